// Heaps with the names of members.

package hdf5

import (
	"errors"
	"math/bits"
)

// heap is a fractal heap, which contains the links of large groups. Objects have offsets in the
// space of its blocks. The sizes of blocks double from row to row of a table, except for the second
// row.
type heap struct {
	*scan
	root         uint64 // address of the root block
	rows         int    // of the root block, if it is a table; 0: it contains objects
	columns      uint64
	start        uint64 // size of the blocks of the first row
	direct       int    // rows of blocks with objects; later ones have tables
	offset, size int    // widths of the offset and the size of an object in its identifier
}

// heap opens the heap with its header at an address.
func (s *scan) heap(address uint64) (*heap, error) {
	const headerSize = 142
	b, err := s.read(address, headerSize)
	if err != nil {
		return nil, err
	}
	if string(b[:4]) != "FRHP" || b[4] != 0 {
		return nil, errDamaged
	}
	if le.Uint16(b[7:]) != 0 {
		return nil, errors.New("the names of the links of the group are compressed, which is not supported; " + rewrite)
	}
	h := &heap{scan: s, columns: uint64(le.Uint16(b[110:])), start: le.Uint64(b[112:]), root: le.Uint64(b[132:]),
		rows: int(le.Uint16(b[140:]))}
	largest, space := le.Uint64(b[120:]), int(le.Uint16(b[128:]))
	tooWide, _ := bits.Mul64(h.start, h.columns) // the first row has 2^64 bytes or more
	if tooWide > 0 || !power(h.columns) || !power(h.start) || !power(largest) || largest < h.start || space < 1 ||
		space > 64 || h.rows > 64 {
		return nil, errDamaged
	}
	h.direct = log2(largest) - log2(h.start) + 2
	h.offset, h.size = (space+7)/8, min((log2(largest)+7)/8, int(width(uint64(le.Uint32(b[10:])))))
	return h, nil
}

func power(n uint64) bool { return bits.OnesCount64(n) == 1 }

func log2(n uint64) int { return bits.Len64(n) - 1 }

// object returns the object with an identifier.
func (h *heap) object(id []byte) ([]byte, error) {
	const managed, tiny = 0, 2
	if len(id) == 0 || id[0]>>6 != 0 {
		return nil, errDamaged
	}
	switch id[0] >> 4 & 3 {
	case managed:
	case tiny:
		n := int(id[0]&15) + 1
		if len(id) < 1+n {
			return nil, errDamaged
		}
		return id[1 : 1+n], nil
	default:
		return nil, errors.New("a name in the group is too long; " + rewrite)
	}
	if len(id) < 1+h.offset+h.size {
		return nil, errDamaged
	}
	offset, size := uint(id[1:1+h.offset]), uint(id[1+h.offset:1+h.offset+h.size])
	return h.find(h.root, h.rows, offset, size, 0)
}

// find reads an object in the block at an address, a table of some rows or, without rows, a block of
// objects.
func (h *heap) find(address uint64, rows int, offset, size uint64, depth int) ([]byte, error) {
	if rows == 0 {
		at := address + offset
		if at < address {
			return nil, errDamaged
		}
		return h.read(at, size)
	}
	row, block := 0, h.start
	if first := h.start * h.columns; offset >= first {
		row = log2(offset/first) + 1
		block <<= row - 1
		offset -= first << (row - 1)
	}
	if depth > maxDepth || row >= rows || block == 0 {
		return nil, errDamaged
	}
	entry := uint64(row)*h.columns + offset/block
	prefix := uint64(4 + 1 + 8 + h.offset)
	head, err := h.read(address, 4)
	if err != nil {
		return nil, err
	}
	if string(head) != "FHIB" {
		return nil, errDamaged
	}
	b, err := h.read(address+prefix+8*entry, 8)
	if err != nil {
		return nil, err
	}
	below := 0
	if row >= h.direct {
		below = log2(block) - log2(h.start*h.columns) + 1
	}
	return h.find(le.Uint64(b), below, offset%block, size, depth+1)
}
