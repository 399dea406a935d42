// Values of a dataset, row by row.

package hdf5

import (
	"bytes"
	"fmt"
	"io"
	"slices"

	"github.com/klauspost/compress/zlib"

	"github.com/miplc/miplc/internal/ndarray"
)

// blockBytes is how much is read at a time.
const blockBytes = 1 << 20

// checksumBytes is the size of the checksum at the end of a chunk.
const checksumBytes = 4

// ReadRows reads rows as float32 into to, from row `from` on, as many as to has room for.
// It reads only the chunks that have some of these rows.
func (d *Dataset) ReadRows(to []float32, from int) error {
	return d.readValues(len(to), from, func(at, n int, stored []byte) { d.Type.Floats(to[at:at+n], stored) })
}

// ReadBytes reads rows like ReadRows, but as the bytes of numbers of d.Type.
func (d *Dataset) ReadBytes(to []byte, from int) error {
	size := d.Type.Size
	return d.readValues(len(to)/size, from, func(at, n int, stored []byte) { copy(to[at*size:(at+n)*size], stored) })
}

// put receives n values, from the value with the number at on. stored starts with their bytes.
type put func(at, n int, stored []byte)

// readValues reads some values, from row `from` on.
func (d *Dataset) readValues(values, from int, to put) error {
	width := d.Width()
	if width == 0 || values%width != 0 || from < 0 || from > d.Rows() || values/width > d.Rows()-from {
		return fmt.Errorf("rows %d to %d of %d values were asked for; the dataset has %d of %d", from, from+values/max(width,
			1), width, d.Rows(), width)
	}
	size, first := d.Type.Size, from*width
	switch {
	case values == 0:
		return nil
	case d.compact != nil:
		to(0, values, d.compact[first*size:])
		return nil
	case d.chunks != nil:
		r := &rowReader{Dataset: d, to: to, from: from, until: from + values/width}
		return r.chunks()
	}
	buffer := make([]byte, min(values*size, blockBytes))
	start := d.file.base + d.address + uint64(first*size)
	for at := 0; at < values; {
		n := min(values-at, len(buffer)/size)
		if err := d.file.readAt(buffer[:n*size], start+uint64(at*size)); err != nil {
			return err
		}
		to(at, n, buffer)
		at += n
	}
	return nil
}

// rowReader reads rows of chunks.
type rowReader struct {
	*Dataset
	to          put
	from, until int // rows
	stored      []byte
	inflated    bytes.Buffer
	shuffled    []byte
	expanded    []byte // by LZF
	inflater    io.ReadCloser
}

// chunks reads the chunks that have rows from r.from to r.until.
func (r *rowReader) chunks() error {
	c := r.Dataset.chunks
	grid := c.grid(r.Shape)
	across := ndarray.Size(grid[1:]) // chunks of the same rows
	list := c.list[r.from/c.shape[0]*across : count(r.until, c.shape[0])*across]
	for len(list) > 0 {
		// One read gets chunks that follow each other in the file. CLAM writes a chunk per row.
		n, size := 1, uint64(list[0].size)
		for n < len(list) && size < blockBytes && list[n].address == list[n-1].address+uint64(list[n-1].size) {
			size += uint64(list[n].size)
			n++
		}
		at := r.file.base + list[0].address
		if at < list[0].address || at > r.file.size || size > r.file.size-at {
			return errDamaged
		}
		r.stored = slices.Grow(r.stored[:0], int(size))[:size]
		if err := r.file.readAt(r.stored, at); err != nil {
			return err
		}
		stored := r.stored
		for _, one := range list[:n] {
			raw, err := r.unpack(stored[:one.size], one)
			if err != nil {
				return err
			}
			r.copyRows(raw, int(one.index), grid)
			stored = stored[one.size:]
		}
		list = list[n:]
	}
	return nil
}

// unpack undoes the filters of a chunk, the last one first.
func (r *rowReader) unpack(b []byte, one chunk) (_ []byte, err error) {
	c := r.Dataset.chunks
	for i := len(c.filters) - 1; i >= 0; i-- {
		if one.mask>>i&1 != 0 {
			continue
		}
		switch c.filters[i] {
		case filterDeflate:
			b, err = r.inflate(b)
		case filterLZF:
			r.expanded, err = expandLZF(r.expanded[:0], b, c.bytes+checksumBytes)
			b = r.expanded
		case filterShuffle:
			b = r.unshuffle(b)
		case filterChecksum:
			if n := len(b) - checksumBytes; n < 0 {
				err = errDamaged
			} else if fletcher32(b[:n]) != le.Uint32(b[n:]) {
				err = fmt.Errorf("the checksum of a chunk is wrong: %w", errDamaged)
			} else {
				b = b[:n]
			}
		}
		if err != nil {
			return nil, err
		}
	}
	if len(b) != c.bytes {
		return nil, fmt.Errorf("a chunk has %d bytes, %d are needed: %w", len(b), c.bytes, errDamaged)
	}
	return b, nil
}

// inflate decompresses at most a chunk.
func (r *rowReader) inflate(b []byte) ([]byte, error) {
	var err error
	if r.inflater == nil {
		r.inflater, err = zlib.NewReader(bytes.NewReader(b))
	} else {
		err = r.inflater.(zlib.Resetter).Reset(bytes.NewReader(b), nil)
	}
	if err == nil {
		r.inflated.Reset()
		r.inflated.Grow(min(r.Dataset.chunks.bytes, len(b)*maxDeflate) + checksumBytes + bytes.MinRead)
		_, err = r.inflated.ReadFrom(io.LimitReader(r.inflater, int64(r.Dataset.chunks.bytes)+checksumBytes+1))
	}
	if err != nil {
		return nil, fmt.Errorf("a chunk cannot be decompressed (%v): %w", err, errDamaged)
	}
	return r.inflated.Bytes(), nil
}

// expandLZF appends what LZF compressed to b, at most the given number of bytes. b consists of runs of
// literals and of references to earlier output.
func expandLZF(to, b []byte, most int) ([]byte, error) {
	fail := fmt.Errorf("a chunk cannot be decompressed by LZF: %w", errDamaged)
	for len(b) > 0 {
		control := int(b[0])
		b = b[1:]
		n := control + 1
		if control < 32 { // literals
			if n > len(b) || len(to)+n > most {
				return nil, fail
			}
			to, b = append(to, b[:n]...), b[n:]
			continue
		}
		n = control >> 5
		if n == 7 && len(b) > 0 {
			n, b = n+int(b[0]), b[1:]
		}
		if n += 2; len(b) == 0 || len(to)+n > most {
			return nil, fail
		}
		from := len(to) - (control&31<<8 | int(b[0])) - 1
		if b = b[1:]; from < 0 {
			return nil, fail
		}
		for i := range n { // the reference may overlap its own output
			to = append(to, to[from+i])
		}
	}
	return to, nil
}

// unshuffle puts the bytes of each value together again: the filter stores the first bytes
// of all values, then the second ones, and so on.
func (r *rowReader) unshuffle(b []byte) []byte {
	size := r.Type.Size
	n := len(b) / size
	r.shuffled = slices.Grow(r.shuffled[:0], len(b))
	out := r.shuffled[:len(b)]
	copy(out[n*size:], b[n*size:])
	for j := range size {
		plane := b[j*n : (j+1)*n]
		to := out[j:]
		for i, x := range plane {
			to[i*size] = x
		}
	}
	return out
}

// copyRows copies the rows asked for from a chunk.
func (r *rowReader) copyRows(raw []byte, index int, grid []int) {
	c, rank := r.Dataset.chunks, len(r.Shape)
	start, extent := make([]int, rank), make([]int, rank) // of the chunk within the array
	for axis := rank - 1; axis >= 0; axis-- {
		start[axis] = index % grid[axis] * c.shape[axis]
		extent[axis] = min(c.shape[axis], r.Shape[axis]-start[axis])
		index /= grid[axis]
	}
	r.copyAxis(raw, 0, 0, 0, start, extent)
}

// copyAxis copies the part of a chunk below some index of the axes before: value `at` of the
// chunk goes to value `to` of the array.
func (r *rowReader) copyAxis(raw []byte, axis, at, to int, start, extent []int) {
	c, size := r.Dataset.chunks, r.Type.Size
	first, last := 0, extent[axis]
	if axis == 0 {
		first, last = max(0, r.from-start[0]), min(last, r.until-start[0])
		to -= r.from * ndarray.Size(r.Shape[1:])
	}
	width := ndarray.Size(r.Shape[axis+1:])
	// The rest is adjacent in the chunk and in the array if the chunk spans the other axes.
	whole := true
	for other := axis + 1; other < len(extent); other++ {
		whole = whole && extent[other] == r.Shape[other] && c.shape[other] == r.Shape[other]
	}
	at, to = at+first*c.stride(axis), to+(start[axis]+first)*width
	if whole {
		n := (last - first) * width
		r.to(to, n, raw[at*size:])
		return
	}
	for range last - first {
		r.copyAxis(raw, axis+1, at, to, start, extent)
		at, to = at+c.stride(axis), to+width
	}
}

// fletcher32 is Fletcher's checksum of big-endian words of 16 bits.
func fletcher32(b []byte) uint32 {
	const block = 720 // bytes that cannot overflow the sums
	fold := func(x uint32) uint32 { return x&0xffff + x>>16 }
	var sum1, sum2 uint32
	for len(b) > 0 {
		part := b[:min(block, len(b))]
		b = b[len(part):]
		for ; len(part) > 0; part = part[min(2, len(part)):] {
			sum1 += uint32(part[0]) << 8
			if len(part) > 1 {
				sum1 += uint32(part[1])
			}
			sum2 += sum1
		}
		sum1, sum2 = fold(sum1), fold(sum2)
	}
	return fold(sum2)<<16 | fold(sum1)
}
