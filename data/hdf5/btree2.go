// B-trees of version 1, which index chunks and the links of groups, and of version 2.

package hdf5

import "math/bits"

// tree calls leaf with the key and the address of each child of the lowest nodes of the version 1 B-tree with its root
// at an address. The keys have keySize bytes.
func (s *scan) tree(root, keySize uint64, leaf func(key []byte, child uint64) error) error {
	var visit func(address uint64, depth int) error
	visit = func(address uint64, depth int) error {
		b, err := s.read(address, 24)
		if err != nil {
			return err
		}
		if string(b[:4]) != "TREE" || depth > maxDepth {
			return errDamaged
		}
		level, n := b[5], uint64(le.Uint16(b[6:]))
		entries, err := s.read(address+24, n*(keySize+8))
		if err != nil {
			return err
		}
		for ; len(entries) > 0; entries = entries[keySize+8:] {
			child := le.Uint64(entries[keySize:])
			if level > 0 {
				err = visit(child, depth+1)
			} else {
				err = leaf(entries[:keySize], child)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	return visit(root, 0)
}

// recordsLinks is the type of the records of a version 2 B-tree with the links of a group by the hashes of their
// names.
const recordsLinks = 5

// btree2 reads the nodes of a version 2 B-tree, which indexes the links of large groups.
type btree2 struct {
	*scan
	kind     byte
	size     uint64 // of a record
	nodeSize uint64
	// count is the width of the field with the number of records of a child node. total contains, for
	// each depth, the width of the field with the number of records in the child and all nodes below it.
	count uint64
	total []uint64
	each  func(record []byte) error
}

// btree2 calls each with the records of the tree with its header at an address, in order.
func (s *scan) btree2(address uint64, kind byte, each func(record []byte) error) error {
	const headerSize = 38
	b, err := s.read(address, headerSize)
	if err != nil {
		return err
	}
	if string(b[:4]) != "BTHD" || b[4] != 0 || b[5] != kind {
		return errDamaged
	}
	depth := int(le.Uint16(b[12:]))
	t := &btree2{scan: s, kind: kind, nodeSize: uint64(le.Uint32(b[6:])), size: uint64(le.Uint16(b[10:])), each: each}
	root, n := le.Uint64(b[16:]), uint64(le.Uint16(b[24:]))
	if root == undefined {
		return nil
	}
	if depth > maxDepth || t.size == 0 || t.nodeSize < nodePrefix+t.size || !t.widths(depth) {
		return errDamaged
	}
	return t.node(root, n, depth)
}

const nodePrefix = 10 // signature, version, type and checksum of a node

// widths computes the widths of the fields of internal nodes. It reports whether the sizes are
// possible.
func (t *btree2) widths(depth int) bool {
	most := (t.nodeSize - nodePrefix) / t.size // records of a node
	all := most                                // records of a node and those below
	t.count, t.total = width(most), []uint64{0}
	for range depth {
		pointer := 8 + t.count + t.total[len(t.total)-1]
		if t.nodeSize < nodePrefix+pointer {
			return false
		}
		most = (t.nodeSize - nodePrefix - pointer) / (t.size + pointer)
		high, low := bits.Mul64(most+1, all)
		if all = low + most; high > 0 || all < low {
			return false
		}
		t.total = append(t.total, width(all))
	}
	return true
}

// width is the number of bytes that a field for numbers up to n has.
func width(n uint64) uint64 { return uint64(max(bits.Len64(n), 1)-1)/8 + 1 }

// node reads a node with n records at a depth above the leaves.
func (t *btree2) node(address, n uint64, depth int) error {
	prefix := uint64(nodePrefix - 4)
	pointer := uint64(0)
	signature := "BTLF"
	if n > t.nodeSize/t.size {
		return errDamaged
	}
	if depth > 0 {
		signature, pointer = "BTIN", 8+t.count+t.total[depth-1]
	}
	b, err := t.read(address, prefix+n*t.size+(n+1)*pointer)
	if err != nil {
		return err
	}
	if string(b[:4]) != signature || b[4] != 0 || b[5] != t.kind {
		return errDamaged
	}
	records, children := b[prefix:prefix+n*t.size], b[prefix+n*t.size:]
	for i := range n + 1 {
		if depth > 0 {
			child := children[i*pointer:]
			if err := t.node(le.Uint64(child), uint(child[8:8+t.count]), depth-1); err != nil {
				return err
			}
		}
		if i < n {
			if err := t.each(records[i*t.size : (i+1)*t.size]); err != nil {
				return err
			}
		}
	}
	return nil
}
