// Elements of MAT files, and the arrays that they form.

package rawfile

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/miplc/miplc/internal/fileio"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/internal/resources"
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
var numberTypes = map[uint32]ndarray.Encoding{
	miINT8: {Kind: ndarray.Int, Size: 1}, miINT16: {Kind: ndarray.Int, Size: 2}, miINT32: {Kind: ndarray.Int, Size: 4},
	miINT64: {Kind: ndarray.Int, Size: 8},
	miUINT8: {Kind: ndarray.Uint, Size: 1}, miUINT16: {Kind: ndarray.Uint, Size: 2}, miUINT32: {Kind: ndarray.Uint,
		Size: 4}, miUINT64: {Kind: ndarray.Uint, Size: 8},
	miUTF8: {Kind: ndarray.Uint, Size: 1}, miSINGLE: {Kind: ndarray.Float, Size: 4}, miDOUBLE: {Kind: ndarray.Float,
		Size: 8},
}

const (
	maxDepth     = 16   // nested cells
	maxDims      = 32   // axes of an array
	maxName      = 4096 // bytes of a name
	arrayMemory  = 200  // approximate size of an Array without its contents
	flagComplex  = 0x0800
	smallestCell = 8 // bytes of the shortest element of a cell array
)

// matReader reads one file and counts the memory for its contents.
type matReader struct {
	order    binary.ByteOrder
	left     int64 // memory still allowed
	tooLarge *resources.MemoryError
	variable string // name of the variable that is read; empty: not known yet
}

// spend counts memory before it is used.
func (f *matReader) spend(n int64) error {
	if n > f.left {
		return f.tooLarge
	}
	f.left -= n
	return nil
}

// element is a data element: a tag and data. A small element has up to 4 bytes of data in its tag.
type element struct {
	typ              uint32
	small            bool
	io.LimitedReader // the rest of the data
}

// element reads a tag. io.EOF means that the data end before it.
func (f *matReader) element(r io.Reader) (*element, error) {
	var b [8]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return nil, err
	}
	first := f.order.Uint32(b[:4])
	size := first >> 16
	if size == 0 {
		return &element{typ: first, LimitedReader: io.LimitedReader{R: r, N: int64(f.order.Uint32(b[4:]))}}, nil
	}
	if size > 4 {
		return nil, fmt.Errorf("a small data element claims %d bytes; 4 is the most", size)
	}
	return &element{first & 0xffff, true, io.LimitedReader{R: bytes.NewReader(b[4:]), N: int64(size)}}, nil
}

// nested reads an element of an array: its tag, its data by read, and its padding to a multiple of 8 bytes.
func (f *matReader) nested(array *element, read func(*element) error) error {
	e, err := f.element(array)
	if err != nil {
		return damaged(err)
	}
	size := e.N
	if size > array.N && !e.small {
		return fmt.Errorf("it claims %d bytes, but its array has only %d left", size, array.N)
	}
	if err := read(e); err != nil || e.small {
		return err
	}
	_, err = io.CopyN(io.Discard, array, min(-size&7, array.N))
	return damaged(err)
}

// damaged explains an error inside a variable; nil stays nil.
func damaged(err error) error {
	if errors.Is(err, zlib.ErrChecksum) || errors.Is(err, zlib.ErrHeader) {
		return fmt.Errorf("the packed data are damaged: %w", err)
	}
	return fileio.CutShort(err)
}

// numbers reads an element of at most most numbers of any type.
func (f *matReader) numbers(array *element, what string, most int) (out []float64, err error) {
	err = f.nested(array, func(e *element) error {
		typ, known := numberTypes[e.typ]
		typ.Swap = f.order == binary.BigEndian
		if !known || e.N%int64(typ.Size) != 0 {
			return fmt.Errorf("an element of type %d and %d bytes does not hold numbers", e.typ, e.N)
		}
		n := e.N / int64(typ.Size)
		if n > int64(most) {
			return fmt.Errorf("%d numbers, at most %d fit here", n, most)
		}
		if err := f.spend(8 * n); err != nil {
			return err
		}
		out = make([]float64, 0, min(n, 1<<17)) // grows with the data in the file
		buf := make([]byte, min(e.N, 1<<16))
		for e.N > 0 {
			part := buf[:min(e.N, int64(len(buf)))]
			if _, err := io.ReadFull(e, part); err != nil {
				return damaged(err)
			}
			for ; len(part) > 0; part = part[typ.Size:] {
				out = append(out, typ.Float(part))
			}
		}
		return nil
	})
	if err != nil && !errors.Is(err, f.tooLarge) {
		err = fmt.Errorf("%s: %w", what, err)
	}
	return out, err
}

// matrix reads the array in an element.
func (f *matReader) matrix(e *element, depth int) (*MATArray, error) {
	if e.typ != miMATRIX || e.small {
		return nil, fmt.Errorf("an element of type %d in place of an array", e.typ)
	}
	if err := f.spend(arrayMemory); err != nil {
		return nil, err
	}
	if e.N == 0 { // MATLAB writes [] inside a cell array like this
		return &MATArray{Class: MATDouble, Dims: []int{0, 0}}, nil
	}
	a := &MATArray{}
	if err := f.head(e, a); err != nil {
		return nil, err
	}
	if depth == 0 {
		f.variable = a.Name
	}
	if err := f.body(e, a, depth); err != nil {
		return nil, err
	}
	if e.N > 0 {
		return nil, errors.New("more data than the array needs")
	}
	return a, nil
}

// head reads flags, sizes and name.
func (f *matReader) head(e *element, a *MATArray) error {
	flags, err := f.numbers(e, "array flags", 2)
	if err != nil {
		return err
	}
	if len(flags) != 2 {
		return fmt.Errorf("array flags: %d numbers, not 2", len(flags))
	}
	bits := uint32(flags[0])
	a.Class, a.Complex = MATClass(bits&0xff), bits&flagComplex != 0
	if a.Class < MATCell || a.Class > MATOpaque {
		return fmt.Errorf("array flags: class %d is not known", a.Class)
	}
	dims := []float64{0, 0}
	if a.Class != MATOpaque { // which has no sizes
		if dims, err = f.numbers(e, "extents", maxDims); err != nil {
			return err
		}
	}
	if len(dims) < 2 {
		return fmt.Errorf("%d extents; an array has at least 2", len(dims))
	}
	total := 1.0
	for _, extent := range dims {
		if extent < 0 || extent > math.MaxInt32 || extent != math.Trunc(extent) {
			return fmt.Errorf("the extent %v is not possible", extent)
		}
		a.Dims = append(a.Dims, int(extent))
		if total *= extent; total > 1<<50 {
			return fmt.Errorf("the extents %v are too large", dims)
		}
	}
	codes, err := f.numbers(e, "name", maxName)
	name := make([]byte, len(codes))
	for i, c := range codes {
		name[i] = byte(int(c))
	}
	a.Name = string(name)
	return err
}

func (f *matReader) body(e *element, a *MATArray, depth int) (err error) {
	switch {
	case a.Class == MATCell:
		return f.cells(e, a, depth)
	case a.Class < MATDouble || a.Class > MATUint64 || a.Complex:
		_, err = io.CopyN(io.Discard, e, e.N)
		return damaged(err)
	case a.Len() == 0 && e.N == 0:
		a.Numbers = []float64{}
		return nil
	}
	a.Numbers, err = f.numbers(e, "real part", a.Len())
	if err == nil && len(a.Numbers) != a.Len() {
		err = fmt.Errorf("real part: %d numbers for an array of %s", len(a.Numbers), a.Size())
	}
	return err
}

func (f *matReader) cells(e *element, a *MATArray, depth int) error {
	if depth >= maxDepth {
		return fmt.Errorf("cell arrays nested more than %d deep are not read", maxDepth)
	}
	n := a.Len()
	if int64(n) > e.N/smallestCell {
		return fmt.Errorf("%s cells are claimed, but only %d bytes are left", a.Size(), e.N)
	}
	for i := range n {
		err := f.nested(e, func(cell *element) error {
			c, err := f.matrix(cell, depth+1)
			a.Cells = append(a.Cells, c)
			return err
		})
		if err != nil {
			return fmt.Errorf("cell %s: %w", a.subscripts(i), err)
		}
	}
	return nil
}

// subscripts returns the subscripts of element i, counted from 1, e.g. "(3,2)".
func (a *MATArray) subscripts(i int) string {
	subscripts := make([]string, len(a.Dims))
	for axis, e := range a.Dims {
		subscripts[axis] = fmt.Sprint(i%e + 1)
		i /= e
	}
	return "(" + strings.Join(subscripts, ",") + ")"
}
