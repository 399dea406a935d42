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
	msgAttribute    = 0x0c
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
	const timesFlag, attributesFlag, orderFlag = 0x20, 0x10, 0x04
	b, err := s.read(address, 16)
	if err != nil {
		return nil, err
	}
	if string(b[:4]) != "OHDR" {
		if b[0] != 1 {
			return nil, errDamaged
		}
		return s.messages(address+16, uint64(le.Uint32(b[8:])), 8, false)
	}
	if b[4] != 2 {
		return nil, fmt.Errorf("version %d of an HDF5 object header is not supported", b[4])
	}
	flags, at, prefix := b[5], address+6, 4
	if flags&timesFlag != 0 {
		at += 16
	}
	if flags&attributesFlag != 0 {
		at += 4
	}
	if flags&orderFlag != 0 {
		prefix = 6
	}
	width := uint64(1) << (flags & 3)
	if b, err = s.read(at, width); err != nil {
		return nil, err
	}
	return s.messages(at+width, uint(b), prefix, true)
}

// uint decodes a little-endian integer of up to 8 bytes.
func uint(b []byte) (v uint64) {
	for i, x := range b {
		v |= uint64(x) << (8 * i)
	}
	return v
}

// fields reads the fields of a message. After a field beyond the end, all fields are 0 and short is true.
type fields struct {
	rest  []byte
	short bool
}

// next returns the next n bytes.
func (f *fields) next(n uint64) (b []byte) {
	if f.short = f.short || n > uint64(len(f.rest)); !f.short {
		b, f.rest = f.rest[:n], f.rest[n:]
	}
	return b
}

// number returns the little-endian integer in the next n bytes, up to 8.
func (f *fields) number(n uint64) uint64 { return uint(f.next(n)) }

// messages reads the messages of a header in its first block, of size bytes at an address, and in those that
// continue it. prefix is the number of bytes of a message before its data.
func (s *scan) messages(address, size uint64, prefix int, version2 bool) (list []message, err error) {
	type block struct{ address, size uint64 }
	for blocks := []block{{address, size}}; len(blocks) > 0; blocks = blocks[1:] {
		b, err := s.read(blocks[0].address, blocks[0].size)
		if err != nil {
			return nil, err
		}
		for len(b) >= prefix {
			m, size := message{kind: uint16(b[0]), shared: b[3]&2 != 0}, int(le.Uint16(b[1:]))
			if !version2 {
				m, size = message{kind: le.Uint16(b), shared: b[4]&2 != 0}, int(le.Uint16(b[2:]))
			}
			if prefix+size > len(b) || len(list) == maxMessages {
				return nil, errDamaged
			}
			m.data, b = b[prefix:prefix+size], b[prefix+size:]
			if m.kind != msgContinuation {
				list = append(list, m)
				continue
			}
			if size < 16 {
				return nil, errDamaged
			}
			next := block{le.Uint64(m.data), le.Uint64(m.data[8:])}
			if version2 { // between a signature and a checksum
				next.address, next.size = next.address+4, next.size-8 // read refuses a size below 0
			}
			blocks = append(blocks, next)
		}
	}
	return list, nil
}
