// Arrays of MAT files.

package rawfile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
)

const (
	maxDepth     = 16   // nested cells
	maxDims      = 32   // axes of an array
	maxName      = 4096 // bytes of a name
	arrayMemory  = 200  // approximate size of an Array without its contents
	flagComplex  = 0x0800
	smallestCell = 8 // bytes of the shortest element of a cell array
)

// matrix reads the array in the rest of the section.
func (f *reader) matrix(s *section, depth int) (*MATArray, error) {
	if err := f.spend(arrayMemory); err != nil {
		return nil, err
	}
	if s.N == 0 { // MATLAB writes [] inside a cell array like this
		return &MATArray{Class: MATDouble, Dims: []int{0, 0}}, nil
	}
	a := &MATArray{}
	err := f.head(s, a)
	if err == nil {
		err = f.body(s, a, depth)
	}
	if err == nil && s.N > 0 {
		err = errors.New("more data than the array needs")
	}
	if err != nil {
		if depth == 0 {
			return nil, &inVariable{name: a.Name, err: err}
		}
		return nil, err
	}
	return a, nil
}

// head reads flags, sizes and name.
func (f *reader) head(s *section, a *MATArray) error {
	flags, err := f.numbers(s, "array flags", 2)
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
	if a.Class == MATOpaque { // has no sizes
		a.Dims = []int{0, 0}
		a.Name, err = f.name(s)
		return err
	}
	dims, err := f.numbers(s, "extents", maxDims)
	if err != nil {
		return err
	}
	if len(dims) < 2 {
		return fmt.Errorf("%d extents; an array has at least 2", len(dims))
	}
	total := 1.0
	for _, e := range dims {
		if e < 0 || e > math.MaxInt32 || e != math.Trunc(e) {
			return fmt.Errorf("the extent %v is not possible", e)
		}
		a.Dims = append(a.Dims, int(e))
		if total *= e; total > 1<<50 {
			return fmt.Errorf("the extents %v are too large", dims)
		}
	}
	a.Name, err = f.name(s)
	return err
}

func (f *reader) name(s *section) (string, error) {
	t, err := f.element(s, "name")
	if err != nil {
		return "", err
	}
	if numberTypes[t.typ].Size != 1 {
		return "", fmt.Errorf("name: an element of type %d is not text", t.typ)
	}
	if t.size > maxName {
		return "", fmt.Errorf("name: %d bytes are too many", t.size)
	}
	name := make([]byte, t.size)
	err = f.contents(s, t, func(r io.Reader) error {
		_, err := io.ReadFull(r, name)
		return damaged(err)
	})
	return string(name), err
}

func (f *reader) body(s *section, a *MATArray, depth int) error {
	switch {
	case a.Class == MATCell:
		return f.cells(s, a, depth)
	case a.Class < MATDouble || a.Class > MATUint64 || a.Complex:
		return discard(s, s.N)
	case a.Len() == 0 && s.N == 0:
		a.Numbers = []float64{}
		return nil
	}
	var err error
	a.Numbers, err = f.numbers(s, "real part", a.Len())
	if err == nil && len(a.Numbers) != a.Len() {
		err = fmt.Errorf("real part: %d numbers for an array of %s", len(a.Numbers), a.Size())
	}
	return err
}

func (f *reader) cells(s *section, a *MATArray, depth int) error {
	if depth >= maxDepth {
		return fmt.Errorf("cell arrays nested more than %d deep are not read", maxDepth)
	}
	n := a.Len()
	if int64(n) > s.N/smallestCell {
		return fmt.Errorf("%s cells are claimed, but only %d bytes are left", a.Size(), s.N)
	}
	for i := range n {
		cell, err := f.cell(s, depth+1)
		if err != nil {
			return fmt.Errorf("cell %s: %w", a.subscripts(i), err)
		}
		a.Cells = append(a.Cells, cell)
	}
	return nil
}

func (f *reader) cell(s *section, depth int) (*MATArray, error) {
	t, err := f.element(s, "element")
	if err != nil {
		return nil, err
	}
	if t.typ != miMATRIX || t.small != nil {
		return nil, fmt.Errorf("an element of type %d in place of an array", t.typ)
	}
	var cell *MATArray
	err = f.contents(s, t, func(r io.Reader) (err error) {
		cell, err = f.matrix(r.(*section), depth)
		return err
	})
	return cell, err
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

// numbers reads an element of at most max numbers of any type.
func (f *reader) numbers(s *section, what string, max int) ([]float64, error) {
	t, err := f.element(s, what)
	if err != nil {
		return nil, err
	}
	typ, known := numberTypes[t.typ]
	typ.Swap = f.order == binary.BigEndian
	if !known || t.size%int64(typ.Size) != 0 {
		return nil, fmt.Errorf("%s: an element of type %d and %d bytes does not hold numbers", what, t.typ, t.size)
	}
	n := t.size / int64(typ.Size)
	if n > int64(max) {
		return nil, fmt.Errorf("%s: %d numbers where %d have a place", what, n, max)
	}
	if err := f.spend(8 * n); err != nil {
		return nil, err
	}
	out := make([]float64, 0, min(n, 1<<17)) // grows with the data in the file
	err = f.contents(s, t, func(r io.Reader) error {
		buf := make([]byte, min(t.size, 1<<16))
		for left := t.size; left > 0; {
			part := buf[:min(left, int64(len(buf)))]
			if _, err := io.ReadFull(r, part); err != nil {
				return damaged(err)
			}
			left -= int64(len(part))
			for ; len(part) > 0; part = part[typ.Size:] {
				out = append(out, typ.Float(part))
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	return out, nil
}
