package matfile

import (
	"errors"
	"fmt"
	"io"
	"math"
	"unicode/utf16"
	"unicode/utf8"
)

const (
	maxDepth     = 16   // nested cells
	maxDims      = 32   // extents of an array
	maxName      = 4096 // bytes of a name
	arrayMemory  = 200  // about what an Array takes without its contents
	flagComplex  = 0x0800
	flagLogical  = 0x0200
	smallestCell = 8 // bytes of the shortest element of a cell array
)

// matrix reads the array that fills the section.
func (f *reader) matrix(s *section, depth int) (*Array, error) {
	if err := f.spend(arrayMemory); err != nil {
		return nil, err
	}
	if s.N == 0 { // how MATLAB writes [] inside a cell array
		return &Array{Class: Double, Dims: []int{0, 0}}, nil
	}
	a := &Array{}
	complex, err := f.head(s, a)
	if err == nil {
		err = f.body(s, a, complex, depth)
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

// head reads flags, extents and name.
func (f *reader) head(s *section, a *Array) (complex bool, err error) {
	flags, err := f.numbers(s, "array flags", 2)
	if err != nil {
		return false, err
	}
	if len(flags) != 2 {
		return false, fmt.Errorf("array flags: %d numbers, not 2", len(flags))
	}
	bits := uint32(flags[0])
	a.Class, a.Logical = Class(bits&0xff), bits&flagLogical != 0
	if a.Class < Cell || a.Class > Opaque {
		return false, fmt.Errorf("array flags: class %d is not known", a.Class)
	}
	if a.Class == Opaque { // has no extents
		a.Dims, a.Skipped = []int{0, 0}, true
		a.Name, err = f.name(s)
		return false, err
	}
	dims, err := f.numbers(s, "extents", maxDims)
	if err != nil {
		return false, err
	}
	if len(dims) < 2 {
		return false, fmt.Errorf("%d extents; an array has at least 2", len(dims))
	}
	total := 1.0
	for _, e := range dims {
		if e < 0 || e > math.MaxInt32 || e != math.Trunc(e) {
			return false, fmt.Errorf("the extent %v is not possible", e)
		}
		a.Dims = append(a.Dims, int(e))
		if total *= e; total > 1<<50 {
			return false, fmt.Errorf("the extents %v are too large", dims)
		}
	}
	a.Name, err = f.name(s)
	return bits&flagComplex != 0, err
}

func (f *reader) name(s *section) (string, error) {
	t, err := f.element(s, "name")
	if err != nil {
		return "", err
	}
	if width(t.typ) != 1 {
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

func (f *reader) body(s *section, a *Array, complex bool, depth int) error {
	switch {
	case a.Skipped, a.Class == Struct, a.Class == Object, a.Class == Sparse, a.Class == Function:
		a.Skipped = true
		return discard(s, s.N)
	case a.Class == Cell:
		return f.cells(s, a, depth)
	case a.Class == Char:
		return f.text(s, a)
	}
	var err error
	if a.Numbers, err = f.part(s, a, "real part"); err != nil {
		return err
	}
	if complex {
		a.Imag, err = f.part(s, a, "imaginary part")
	}
	return err
}

func (f *reader) part(s *section, a *Array, what string) ([]float64, error) {
	if a.Len() == 0 && s.N == 0 {
		return []float64{}, nil
	}
	x, err := f.numbers(s, what, a.Len())
	if err == nil && len(x) != a.Len() {
		err = fmt.Errorf("%s: %d numbers for an array of %s", what, len(x), a.Size())
	}
	return x, err
}

func (f *reader) cells(s *section, a *Array, depth int) error {
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
			return fmt.Errorf("cell %s: %w", a.place(i), err)
		}
		a.Cells = append(a.Cells, cell)
	}
	return nil
}

func (f *reader) cell(s *section, depth int) (*Array, error) {
	t, err := f.element(s, "element")
	if err != nil {
		return nil, err
	}
	if t.typ != miMATRIX || t.small != nil {
		return nil, fmt.Errorf("an element of type %d stands where an array is expected", t.typ)
	}
	var cell *Array
	err = f.contents(s, t, func(r io.Reader) (err error) {
		cell, err = f.matrix(r.(*section), depth)
		return err
	})
	return cell, err
}

// place prints the subscripts of element i, counted from 1, e.g. "(3,2)".
func (a *Array) place(i int) string {
	text := "("
	for axis, e := range a.Dims {
		if axis > 0 {
			text += ","
		}
		text += fmt.Sprint(i%e + 1)
		i /= e
	}
	return text + ")"
}

// numbers reads an element of at most max numbers of any type.
func (f *reader) numbers(s *section, what string, max int) ([]float64, error) {
	t, err := f.element(s, what)
	if err != nil {
		return nil, err
	}
	w := width(t.typ)
	if w == 0 || t.size%w != 0 {
		return nil, fmt.Errorf("%s: an element of type %d and %d bytes does not hold numbers", what, t.typ, t.size)
	}
	n := t.size / w
	if n > int64(max) {
		return nil, fmt.Errorf("%s: %d numbers where %d have a place", what, n, max)
	}
	if err := f.spend(8 * n); err != nil {
		return nil, err
	}
	out := make([]float64, 0, min(n, 1<<17)) // grows with what is really there
	err = f.contents(s, t, func(r io.Reader) error {
		buf := make([]byte, min(t.size, 1<<16))
		for left := t.size; left > 0; {
			part := buf[:min(left, int64(len(buf)))]
			if _, err := io.ReadFull(r, part); err != nil {
				return damaged(err)
			}
			out = f.decode(out, t.typ, part)
			left -= int64(len(part))
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	return out, nil
}

// decode appends the numbers of a block.
func (f *reader) decode(out []float64, typ uint32, b []byte) []float64 {
	for w := int(width(typ)); len(b) > 0; b = b[w:] {
		out = append(out, f.number(typ, b))
	}
	return out
}

func (f *reader) number(typ uint32, b []byte) float64 {
	switch typ {
	case miINT8:
		return float64(int8(b[0]))
	case miUINT8, miUTF8:
		return float64(b[0])
	case miINT16:
		return float64(int16(f.order.Uint16(b)))
	case miUINT16, miUTF16:
		return float64(f.order.Uint16(b))
	case miINT32:
		return float64(int32(f.order.Uint32(b)))
	case miUINT32, miUTF32:
		return float64(f.order.Uint32(b))
	case miSINGLE:
		return float64(math.Float32frombits(f.order.Uint32(b)))
	case miDOUBLE:
		return math.Float64frombits(f.order.Uint64(b))
	case miINT64:
		return float64(int64(f.order.Uint64(b)))
	default: // miUINT64
		return float64(f.order.Uint64(b))
	}
}

// text reads the rows of a char array.
func (f *reader) text(s *section, a *Array) error {
	if len(a.Dims) != 2 {
		return fmt.Errorf("text of %s is not read; it may have rows and columns", a.Size())
	}
	if a.Len() == 0 {
		return discard(s, s.N)
	}
	t, err := f.element(s, "text")
	if err != nil {
		return err
	}
	runes, err := f.runes(s, t)
	if err != nil {
		return err
	}
	rows, columns := a.Dims[0], a.Dims[1]
	if rows == 1 { // in UTF-8 and UTF-16 there may be fewer letters than columns
		a.Text = []string{string(runes)}
		return nil
	}
	if len(runes) != rows*columns {
		return fmt.Errorf("text: %d letters for an array of %s", len(runes), a.Size())
	}
	for i := range rows {
		row := make([]rune, columns)
		for j := range row {
			row[j] = runes[i+j*rows]
		}
		a.Text = append(a.Text, string(row))
	}
	return nil
}

func (f *reader) runes(s *section, t tag) ([]rune, error) {
	w := width(t.typ)
	if w == 0 || w == 8 || t.typ == miSINGLE || t.size%w != 0 {
		return nil, fmt.Errorf("text: an element of type %d and %d bytes does not hold letters", t.typ, t.size)
	}
	if err := f.spend(16 * t.size / w); err != nil {
		return nil, err
	}
	var codes []float64
	err := f.contents(s, t, func(r io.Reader) error {
		b, err := io.ReadAll(r)
		if err == nil && int64(len(b)) < t.size {
			err = io.ErrUnexpectedEOF
		}
		if err != nil { // a part of a number cannot be decoded
			return damaged(err)
		}
		codes = f.decode(nil, t.typ, b)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("text: %w", err)
	}
	return toRunes(codes, t.typ), nil
}

func toRunes(codes []float64, typ uint32) []rune {
	switch typ {
	case miUTF8:
		b := make([]byte, len(codes))
		for i, c := range codes {
			b[i] = byte(c)
		}
		return []rune(string(b))
	case miUTF16, miUINT16:
		u := make([]uint16, len(codes))
		for i, c := range codes {
			u[i] = uint16(c)
		}
		return utf16.Decode(u)
	}
	out := make([]rune, len(codes))
	for i, c := range codes {
		out[i] = utf8.RuneError
		if c >= 0 && c <= utf8.MaxRune {
			out[i] = rune(c)
		}
	}
	return out
}
