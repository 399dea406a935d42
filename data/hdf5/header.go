// Object headers.

package hdf5

import "fmt"

// Types of the messages in an object header.
const (
	msgDataspace    = 0x01
	msgLinkInfo     = 0x02
	msgDatatype     = 0x03
	msgLink         = 0x06
	msgExternal     = 0x07
	msgLayout       = 0x08
	msgFilters      = 0x0b
	msgContinuation = 0x10
	msgSymbolTable  = 0x11
)

// message is one message of an object header.
type message struct {
	kind   uint16
	shared bool // data is a reference to a message elsewhere
	data   []byte
}

// maxMessages bounds an object header; those of h5py have about ten messages, and one per
// attribute and per link of a small group.
const maxMessages = 1 << 16

// header reads the messages of the object header at an address.
func (s *scan) header(address uint64) ([]message, error) {
	b, err := s.read(address, 16)
	if err != nil {
		return nil, err
	}
	if string(b[:4]) == "OHDR" {
		return s.header2(address)
	}
	if b[0] != 1 {
		return nil, errDamaged
	}
	h := &headerReader{scan: s, prefix: 8, blocks: []block{{address + 16, uint64(le.Uint32(b[8:]))}}}
	return h.messages()
}

// header2 reads an object header of version 2, which newer files have.
func (s *scan) header2(address uint64) ([]message, error) {
	const timesFlag, attributesFlag, orderFlag = 0x20, 0x10, 0x04
	b, err := s.read(address, 6)
	if err != nil {
		return nil, err
	}
	if b[4] != 2 {
		return nil, fmt.Errorf("version %d of an HDF5 object header is not supported", b[4])
	}
	flags, at := b[5], address+6
	if flags&timesFlag != 0 {
		at += 16
	}
	if flags&attributesFlag != 0 {
		at += 4
	}
	width := uint64(1) << (flags & 3)
	if b, err = s.read(at, width); err != nil {
		return nil, err
	}
	h := &headerReader{scan: s, prefix: 4, version2: true, blocks: []block{{at + width, uint(b)}}}
	if flags&orderFlag != 0 {
		h.prefix = 6
	}
	return h.messages()
}

// uint decodes a little-endian integer of up to 8 bytes.
func uint(b []byte) (v uint64) {
	for i, x := range b {
		v |= uint64(x) << (8 * i)
	}
	return v
}

// block is a part of an object header.
type block struct{ address, size uint64 }

// headerReader reads the blocks of an object header.
type headerReader struct {
	*scan
	blocks   []block
	prefix   int // bytes of a message before its data
	version2 bool
	list     []message
}

func (h *headerReader) messages() ([]message, error) {
	for len(h.blocks) > 0 {
		b := h.blocks[0]
		h.blocks = h.blocks[1:]
		data, err := h.read(b.address, b.size)
		if err != nil {
			return nil, err
		}
		if err := h.block(data); err != nil {
			return nil, err
		}
	}
	return h.list, nil
}

// block takes the messages of one block.
func (h *headerReader) block(b []byte) error {
	for len(b) >= h.prefix {
		var m message
		var size int
		if h.version2 {
			m.kind, m.shared, size = uint16(b[0]), b[3]&2 != 0, int(le.Uint16(b[1:]))
		} else {
			m.kind, m.shared, size = le.Uint16(b), b[4]&2 != 0, int(le.Uint16(b[2:]))
		}
		if h.prefix+size > len(b) {
			return errDamaged
		}
		m.data = b[h.prefix : h.prefix+size]
		b = b[h.prefix+size:]
		if m.kind == msgContinuation {
			if err := h.continued(m.data); err != nil {
				return err
			}
			continue
		}
		if len(h.list) == maxMessages {
			return errDamaged
		}
		h.list = append(h.list, m)
	}
	return nil
}

// continued adds the block that a continuation message names.
func (h *headerReader) continued(b []byte) error {
	if len(b) < 16 {
		return errDamaged
	}
	next := block{le.Uint64(b), le.Uint64(b[8:])}
	if h.version2 { // between a signature and a checksum
		if next.size < 8 {
			return errDamaged
		}
		next.address, next.size = next.address+4, next.size-8
	}
	h.blocks = append(h.blocks, next)
	return nil
}
