// Crafted heaps: the fuzzer of whole files does not reach them, because each of their fields depends on others.

package hdf5

import (
	"bytes"
	"errors"
	"slices"
	"testing"
)

// craftedHeap is a file of a root group whose links are in a heap.
type craftedHeap struct {
	columns         uint16
	start, largest  uint64
	space, rows     uint16
	maxSize         uint32 // of an object
	id              []byte // identifier of the only link in the heap
	root            []byte // the root block
	nested          []byte // a block after it, at nestedAt
	nodeSize, depth uint16 // of the tree with the identifier
}

// Addresses in a crafted file.
const (
	headerAt = 48  // of the root group
	heapAt   = 80  // the header of the heap
	treeAt   = 224 // the header of the tree
	leafAt   = 264
	rootAt   = 512
	nestedAt = 1024
)

// file returns the bytes of the file.
func (h *craftedHeap) file() []byte {
	b := make([]byte, nestedAt+len(h.nested))
	copy(b, signature)
	b[8], b[9], b[10] = 2, 8, 8
	le.PutUint64(b[36:], headerAt)

	copy(b[headerAt:], "OHDR\x02\x00\x16") // 22 bytes of messages
	b[headerAt+7], b[headerAt+8] = msgLinkInfo, 18
	le.PutUint64(b[headerAt+13:], heapAt)
	le.PutUint64(b[headerAt+21:], treeAt)

	header := b[heapAt:]
	copy(header, "FRHP")
	le.PutUint32(header[10:], h.maxSize)
	le.PutUint16(header[110:], h.columns)
	le.PutUint64(header[112:], h.start)
	le.PutUint64(header[120:], h.largest)
	le.PutUint16(header[128:], h.space)
	le.PutUint64(header[132:], rootAt)
	le.PutUint16(header[140:], h.rows)

	tree := b[treeAt:]
	copy(tree, "BTHD\x00\x05")
	le.PutUint32(tree[6:], uint32(h.nodeSize))
	le.PutUint16(tree[10:], uint16(4+len(h.id)))
	le.PutUint16(tree[12:], h.depth)
	le.PutUint64(tree[16:], leafAt)
	le.PutUint16(tree[24:], 1)
	copy(b[leafAt:], "BTLF\x00\x05")
	copy(b[leafAt+10:rootAt], h.id) // after the hash of the name

	copy(b[rootAt:nestedAt], h.root)
	copy(b[nestedAt:], h.nested)
	return b
}

// names returns the names of the links of the root group.
func (h *craftedHeap) names(t *testing.T) ([]string, error) {
	t.Helper()
	content := h.file()
	f, err := Open(bytes.NewReader(content), int64(len(content)))
	if err != nil {
		t.Fatal(err)
	}
	return f.Names("")
}

// linkX is the message of a hard link x to the root group.
const linkX = "\x01\x00\x01x\x30\x00\x00\x00\x00\x00\x00\x00"

// directHeap has the link in its only block, at the offset 20.
func directHeap() *craftedHeap {
	return &craftedHeap{columns: 4, start: 512, largest: 4096, space: 32, maxSize: 4096, nodeSize: 128,
		id: []byte{0, 20, 0, 0, 0, byte(len(linkX)), 0}, root: append(make([]byte, 20), linkX...)}
}

// tableHeap has a table of two rows, and the link at the offset 20 of the second block of the second row.
func tableHeap() *craftedHeap {
	h := directHeap()
	h.rows = 2
	offset := 5*512 + 20
	h.id = []byte{0, byte(offset), byte(offset >> 8), 0, 0, byte(len(linkX)), 0}
	h.root = append([]byte("FHIB"), make([]byte, 13+8*8)...)
	le.PutUint64(h.root[17+8*5:], nestedAt)
	h.nested = append(make([]byte, 20), linkX...)
	return h
}

func TestHeaps(t *testing.T) {
	for name, h := range map[string]*craftedHeap{"one block": directHeap(), "a table": tableHeap()} {
		if names, err := h.names(t); err != nil || !slices.Equal(names, []string{"x"}) {
			t.Errorf("%s: %q, %v", name, names, err)
		}
	}
}

// hugeRow is a heap whose first row has 2^64 bytes, which was a division by zero.
func hugeRow() *craftedHeap {
	h := tableHeap()
	h.columns, h.start, h.largest = 2, 1<<63, 1<<63
	return h
}

func TestDamagedHeaps(t *testing.T) {
	for name, change := range map[string]func(h *craftedHeap){
		"a row of 2^64 bytes":           func(h *craftedHeap) { *h = *hugeRow() },
		"columns are not a power of 2":  func(h *craftedHeap) { h.columns = 3 },
		"no columns":                    func(h *craftedHeap) { h.columns = 0 },
		"blocks without bytes":          func(h *craftedHeap) { h.start = 0 },
		"largest block below the first": func(h *craftedHeap) { h.largest = 256 },
		"no space":                      func(h *craftedHeap) { h.space = 0 },
		"an object after the last row":  func(h *craftedHeap) { h.id[3] = 1 },
		"a block outside of the file":   func(h *craftedHeap) { le.PutUint64(h.root[17+8*5:], 1<<40) },
		"a table in itself":             func(h *craftedHeap) { le.PutUint64(h.root[17+8*5:], rootAt); h.largest = 512 },
		"an identifier that is short":   func(h *craftedHeap) { h.id = h.id[:5] },
	} {
		h := tableHeap()
		change(h)
		if names, err := h.names(t); !errors.Is(err, errDamaged) {
			t.Errorf("%s: %q, %v", name, names, err)
		}
	}
}

func FuzzHeap(f *testing.F) {
	for _, h := range []*craftedHeap{directHeap(), tableHeap(), hugeRow()} {
		f.Add(h.columns, h.start, h.largest, h.space, h.rows, h.maxSize, h.nodeSize, h.depth, h.id, h.root, h.nested)
	}
	f.Fuzz(func(t *testing.T, columns uint16, start, largest uint64, space, rows uint16, maxSize uint32, nodeSize,
		depth uint16, id, root, nested []byte) {
		h := &craftedHeap{columns, start, largest, space, rows, maxSize, id, root, nested, nodeSize, depth}
		_, _ = h.names(t)
	})
}
