// Elements of MAT files.

package rawfile

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/miplc/miplc/internal/fileio"
	"github.com/miplc/miplc/internal/memory"
	"github.com/miplc/miplc/internal/ndarray"
)

// Types of data elements.
const (
	miINT8       = 1
	miUINT8      = 2
	miINT16      = 3
	miUINT16     = 4
	miINT32      = 5
	miUINT32     = 6
	miSINGLE     = 7
	miDOUBLE     = 9
	miINT64      = 12
	miUINT64     = 13
	miMATRIX     = 14
	miCOMPRESSED = 15
	miUTF8       = 16
)

// numberTypes are the numeric data types.
var numberTypes = map[uint32]ndarray.Number{
	miINT8: {Kind: ndarray.Int, Size: 1}, miINT16: {Kind: ndarray.Int, Size: 2}, miINT32: {Kind: ndarray.Int, Size: 4},
	miINT64: {Kind: ndarray.Int, Size: 8},
	miUINT8: {Kind: ndarray.Uint, Size: 1}, miUINT16: {Kind: ndarray.Uint, Size: 2}, miUINT32: {Kind: ndarray.Uint,
		Size: 4}, miUINT64: {Kind: ndarray.Uint, Size: 8},
	miUTF8: {Kind: ndarray.Uint, Size: 1}, miSINGLE: {Kind: ndarray.Float, Size: 4}, miDOUBLE: {Kind: ndarray.Float,
		Size: 8},
}

// tag is the start of a data element. A small element contains its data, up to 4 bytes.
type tag struct {
	typ   uint32
	size  int64 // bytes of data
	small []byte
}

// reader reads one file and counts the memory for its contents.
type reader struct {
	order    binary.ByteOrder
	left     int64 // memory still allowed
	tooLarge *memory.Error
}

// spend counts memory before it is used.
func (f *reader) spend(n int64) error {
	if n > f.left {
		return f.tooLarge
	}
	f.left -= n
	return nil
}

// readTag reads a tag. io.EOF means that the data end before it.
func (f *reader) readTag(r io.Reader) (tag, error) {
	var b [8]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return tag{}, err
	}
	first := f.order.Uint32(b[:4])
	if size := first >> 16; size != 0 {
		if size > 4 {
			return tag{}, fmt.Errorf("a small data element claims %d bytes; 4 is the most", size)
		}
		return tag{typ: first & 0xffff, size: int64(size), small: append([]byte(nil), b[4:4+size]...)}, nil
	}
	return tag{typ: first, size: int64(f.order.Uint32(b[4:]))}, nil
}

// variable reads the array at a tag of the top level and decompresses it if necessary.
func (f *reader) variable(r io.Reader, t tag) (*MATArray, error) {
	switch {
	case t.typ == miMATRIX && t.small == nil:
		return f.matrix(&section{R: r, N: t.size}, 0)
	case t.typ == miCOMPRESSED && t.small == nil:
		return f.packed(r, t)
	}
	return nil, fmt.Errorf("an element of type %d in place of an array", t.typ)
}

func (f *reader) packed(r io.Reader, t tag) (*MATArray, error) {
	in := &section{R: r, N: t.size}
	z, err := zlib.NewReader(in)
	if err != nil {
		return nil, fmt.Errorf("the packed data are damaged: %w", fileio.CutShort(err))
	}
	inner, err := f.readTag(z)
	if err != nil {
		return nil, damaged(err)
	}
	if inner.typ != miMATRIX || inner.small != nil {
		return nil, fmt.Errorf("the packed data hold an element of type %d, not an array", inner.typ)
	}
	a, err := f.matrix(&section{R: z, N: inner.size}, 0)
	if err != nil {
		return nil, err
	}
	// Reading to the end verifies the checksum of the compressed data.
	var one [1]byte
	if n, err := io.ReadFull(z, one[:]); n > 0 {
		return nil, &inVariable{name: a.Name, err: errors.New("more packed data than its size says")}
	} else if err != io.EOF {
		return nil, &inVariable{name: a.Name, err: damaged(err)}
	}
	if _, err := io.Copy(io.Discard, in); err != nil {
		return nil, err
	}
	return a, nil
}

// damaged explains an error inside a variable; nil stays nil.
func damaged(err error) error {
	if errors.Is(err, zlib.ErrChecksum) || errors.Is(err, zlib.ErrHeader) {
		return fmt.Errorf("the packed data are damaged: %w", err)
	}
	return fileio.CutShort(err)
}

// section is the rest of an element with nested elements.
type section = io.LimitedReader

// discard skips n bytes of the section.
func discard(s *section, n int64) error {
	_, err := io.CopyN(io.Discard, s, n)
	return damaged(err)
}

// element reads the tag of a nested element and checks its size.
func (f *reader) element(s *section, what string) (tag, error) {
	t, err := f.readTag(s)
	if err != nil {
		return tag{}, fmt.Errorf("%s: %w", what, damaged(err))
	}
	if t.small == nil && t.size > s.N {
		return tag{}, fmt.Errorf("%s: it claims %d bytes, but its array has only %d left", what, t.size, s.N)
	}
	return t, nil
}

// contents passes the data of a nested element to read and then skips to the next multiple of 8
// bytes.
func (f *reader) contents(s *section, t tag, read func(r io.Reader) error) error {
	if t.small != nil {
		return read(bytes.NewReader(t.small))
	}
	in := &section{R: s, N: t.size}
	if err := read(in); err != nil {
		return err
	}
	if in.N > 0 {
		return errors.New("an element is longer than its contents")
	}
	if pad := -t.size & 7; pad > 0 {
		return discard(s, min(pad, s.N))
	}
	return nil
}

// inVariable is an error inside the variable of that name.
type inVariable struct {
	name string
	err  error
}

func (e *inVariable) Error() string { return fmt.Sprintf("variable %q: %v", e.name, e.err) }
func (e *inVariable) Unwrap() error { return e.err }
