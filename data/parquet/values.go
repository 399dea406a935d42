package parquet

import (
	"errors"
	"math/bits"

	"github.com/miplc/miplc/internal/ndarray"
)

// values are the values of a page.
type values struct {
	first   int      // number of the first one in the chunk
	n       int      // with missing ones
	raw     []byte   // numbers that are present, little-endian
	texts   [][]byte // texts that are present
	present []bool   // [n]; nil: all
	starts  []bool   // [n] for lists: whether a value is the first of a row
}

// Encodings of values and levels.
const (
	encodingPlain           = 0
	encodingPlainDictionary = 2
	encodingRLE             = 3
	encodingDictionary      = 8
	encodingSplit           = 9
)

// data reads the values of a page of version 1.
func (r *pageReader) data(p page) (*values, error) {
	b, err := r.content(p.size, p.stored, true)
	if err != nil {
		return nil, err
	}
	v := &values{n: int(p.values)}
	for i, most := range []int{r.maxRep, r.maxDef} {
		if most == 0 {
			continue
		}
		if p.levels[1-i] != encodingRLE {
			return nil, &unsupportedError{"levels of an outdated encoding", "write the file with a newer program"}
		}
		if len(b) < 4 || int64(le.Uint32(b)) > int64(len(b)-4) {
			return nil, errDamaged
		}
		size := 4 + int(le.Uint32(b))
		if err := r.levels(v, b[4:size], i == 0); err != nil {
			return nil, err
		}
		b = b[size:]
	}
	return v, r.decode(v, b, p.encoding)
}

// data2 reads the values of a page of version 2, whose levels are not compressed.
func (r *pageReader) data2(p page) (*values, error) {
	if p.reps > p.stored || p.defs > p.stored-p.reps || p.reps+p.defs > p.size {
		return nil, errDamaged
	}
	v := &values{n: int(p.values)}
	for i, size := range []int64{p.reps, p.defs} {
		b, err := r.content(size, size, false)
		if err != nil {
			return nil, err
		}
		if []int{r.maxRep, r.maxDef}[i] > 0 {
			if err := r.levels(v, b, i == 0); err != nil {
				return nil, err
			}
		}
	}
	size, stored := p.size-p.reps-p.defs, p.stored-p.reps-p.defs
	b, err := r.content(size, stored, p.compressed && stored > 0)
	if err != nil {
		return nil, err
	}
	return v, r.decode(v, b, p.encoding)
}

// levels reads repetition or definition levels.
func (r *pageReader) levels(v *values, b []byte, repetition bool) error {
	most := r.maxDef
	if repetition {
		most = r.maxRep
	}
	flags := make([]bool, v.n)
	all := true
	err := hybrid(b, bits.Len(uint(most)), v.n, func(i int, level uint64) error {
		if level > uint64(most) {
			return errDamaged
		}
		flags[i] = (level == 0) == repetition && (repetition || level == uint64(most))
		all = all && flags[i]
		return nil
	})
	switch {
	case repetition:
		v.starts = flags
	case !all:
		v.present = flags
	}
	return err
}

// count returns the number of values that are present.
func (v *values) count() int {
	n := v.n
	for _, p := range v.present {
		if !p {
			n--
		}
	}
	return n
}

// decode reads the values of a page.
func (r *pageReader) decode(v *values, b []byte, encoding int64) error {
	n := v.count()
	switch encoding {
	case encodingPlain:
		return r.plainValues(v, b, n)
	case encodingDictionary, encodingPlainDictionary:
		return r.lookUp(v, b, n)
	case encodingSplit:
		return r.join(v, b, n)
	case encodingRLE:
		if r.physical != typeBool || len(b) < 4 || int64(le.Uint32(b)) > int64(len(b)-4) {
			return errDamaged
		}
		v.raw = make([]byte, n)
		return hybrid(b[4:4+le.Uint32(b)], 1, n, func(i int, x uint64) error { v.raw[i] = byte(x); return nil })
	}
	names := map[int64]string{4: "bit-packed", 5: "DELTA_BINARY_PACKED", 6: "DELTA_LENGTH_BYTE_ARRAY", 7: "DELTA_BYTE_ARRAY"}
	if name := names[encoding]; name != "" {
		return &unsupportedError{"the encoding " + name, "write the file with the encodings that pandas and pyarrow choose"}
	}
	return errDamaged
}

// plainValues reads the n values that are present. They share memory with b.
func (r *pageReader) plainValues(v *values, b []byte, n int) error {
	switch {
	case r.Text:
		if n > len(b)/4 {
			return errDamaged
		}
		v.texts = make([][]byte, n)
		for i := range v.texts {
			if len(b) < 4 || int64(le.Uint32(b)) > int64(len(b)-4) {
				return errDamaged
			}
			end := 4 + int(le.Uint32(b))
			v.texts[i], b = b[4:end], b[end:]
		}
	case r.physical == typeBool:
		if n > 8*len(b) {
			return errDamaged
		}
		v.raw = make([]byte, n)
		for i := range v.raw {
			v.raw[i] = b[i/8] >> (i % 8) & 1
		}
	default:
		if n > len(b)/r.kind.Size {
			return errDamaged
		}
		v.raw = b[:n*r.kind.Size]
	}
	return nil
}

// lookUp reads indices into the dictionary.
func (r *pageReader) lookUp(v *values, b []byte, n int) error {
	if r.dictionary == nil || n > 0 && len(b) == 0 {
		return errDamaged
	}
	if n == 0 {
		return nil
	}
	size := r.kind.Size
	if r.Text {
		v.texts = make([][]byte, n)
	} else {
		v.raw = make([]byte, n*size)
	}
	return hybrid(b[1:], int(b[0]), n, func(i int, index uint64) error {
		if index >= uint64(r.dictionary.n) {
			return errDamaged
		}
		if r.Text {
			v.texts[i] = r.dictionary.texts[index]
		} else {
			copy(v.raw[i*size:(i+1)*size], r.dictionary.raw[int(index)*size:])
		}
		return nil
	})
}

// join undoes the byte-stream-split encoding: the first bytes of all values, then the second ones.
func (r *pageReader) join(v *values, b []byte, n int) error {
	size := r.kind.Size
	if r.Text || r.physical == typeBool || n > len(b)/size {
		return errDamaged
	}
	v.raw = make([]byte, n*size)
	for j := range size {
		for i, x := range b[j*n : (j+1)*n] {
			v.raw[i*size+j] = x
		}
	}
	return nil
}

// hybrid decodes n integers of width bits: runs of one value, and groups of eight bit-packed values.
func hybrid(b []byte, width, n int, set func(i int, x uint64) error) error {
	const maxWidth = 32
	if width > maxWidth {
		return errDamaged
	}
	t := &thrift{b: b}
	for i := 0; i < n; {
		header := t.uvarint()
		run := header >> 1
		if t.failed || run == 0 {
			return errDamaged
		}
		if header&1 == 0 {
			x := bitsAt(t.bytes(uint64(width+7)/8), 0, 8*((width+7)/8))
			if t.failed {
				return errDamaged
			}
			for end := i + int(min(run, uint64(n-i))); i < end; i++ {
				if err := set(i, x); err != nil {
					return err
				}
			}
			continue
		}
		groups := min(run, uint64(n-i+7)/8) // the last run may be longer than the page
		packed := t.bytes(groups * uint64(width))
		if t.failed {
			return errDamaged
		}
		if rest := (run - groups) * uint64(width); rest > 0 {
			t.b = t.b[min(rest, uint64(len(t.b))):]
		}
		for j := 0; j < int(8*groups) && i < n; i, j = i+1, j+1 {
			if err := set(i, bitsAt(packed, j*width, width)); err != nil {
				return err
			}
		}
	}
	return nil
}

// bitsAt returns the integer of width bits, up to 32, that starts at a bit of b, lowest bits first.
func bitsAt(b []byte, at, width int) (x uint64) {
	for i := at / 8; i < len(b) && i*8 < at+width; i++ {
		if shift := i*8 - at; shift >= 0 {
			x |= uint64(b[i]) << shift
		} else {
			x |= uint64(b[i]) >> -shift
		}
	}
	return x & (1<<width - 1)
}

// errMissing reports a missing number.
var errMissing = errors.New("has no value")

// floats converts the numbers of a page without missing values to float32.
func (v *values) floats(kind ndarray.Number, buffer []float32) ([]float32, error) {
	if v.present != nil {
		return nil, errMissing
	}
	if cap(buffer) < v.n {
		buffer = make([]float32, v.n)
	}
	buffer = buffer[:v.n]
	kind.Floats(buffer, v.raw)
	return buffer, nil
}
