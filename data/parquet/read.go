package parquet

import (
	"bufio"
	"fmt"
	"io"
	"iter"
	"math"
	"strconv"

	"github.com/miplc/miplc/internal/ndarray"
)

// reset starts to read a chunk.
func (r *pageReader) reset(f *File, c *Column, g rowGroup) {
	r.Column, r.chunk = c, g.chunks[c.index]
	r.left, r.seen, r.dictionary = r.end-r.start, 0, nil
	section := io.NewSectionReader(f.r, r.start, r.left)
	if r.in == nil {
		r.in = bufio.NewReaderSize(section, maxHeader)
	} else {
		r.in.Reset(section)
	}
}

// pages iterates over the pages of a chunk. The values are valid until the next iteration.
func (r *pageReader) pages() iter.Seq2[*values, error] {
	return func(yield func(*values, error) bool) {
		for {
			first := r.seen
			v, err := r.next()
			if v != nil && err == nil {
				v.first = first
				err = r.checkRows(v)
			}
			if v == nil && err == nil || !yield(v, err) || err != nil {
				return
			}
		}
	}
}

// checkRows checks that each row has Width values.
func (r *pageReader) checkRows(v *values) error {
	for i, start := range v.starts {
		if start != ((v.first+i)%r.Width == 0) {
			return errLists
		}
	}
	return nil
}

// ReadRows reads rows of columns of numbers into to until it is full, starting with row number from.
// A row has the values of all columns.
func (f *File) ReadRows(to []float32, from int, columns []*Column) error {
	width := 0
	for _, c := range columns {
		if err := c.Readable(); err != nil {
			return err
		}
		if c.Text {
			return fmt.Errorf("the column %q contains text; numbers are needed", c.Name)
		}
		width += c.Width
	}
	if width == 0 || len(to)%width != 0 || from < 0 || from > f.Rows || len(to)/width > f.Rows-from {
		return fmt.Errorf("rows %d to %d were requested; the file has %d", from, from+len(to)/max(width, 1), f.Rows)
	}
	r := &rowReader{to: to, width: width, until: from + len(to)/width}
	defer r.close()
	for _, g := range f.groups {
		if from < g.rows && r.until > 0 {
			r.offset, r.from = 0, from
			for _, c := range columns {
				r.reset(f, c, g)
				if err := r.column(); err != nil {
					return fmt.Errorf("the column %q: %w", c.Name, err)
				}
				r.offset += c.Width
			}
		}
		from, r.until = from-g.rows, r.until-g.rows
	}
	return nil
}

// rowReader reads rows of a row group.
type rowReader struct {
	pageReader
	to          []float32
	width       int // values of a row of to
	offset      int // of the column in a row of to
	from, until int // rows, counted from the first one of the group; from is that of to[0]
	buffer      []float32
}

func (r *rowReader) column() error {
	for v, err := range r.pages() {
		if err != nil {
			return err
		}
		if (v.first+v.n)/r.Width <= r.from {
			continue
		}
		if v.first/r.Width >= r.until {
			return nil
		}
		x, err := v.floats(r.kind, r.buffer)
		if err != nil {
			return fmt.Errorf("a row %w", err)
		}
		r.buffer = x
		for i := max(0, r.from*r.Width-v.first); i < len(x) && v.first+i < r.until*r.Width; {
			row, value := (v.first+i)/r.Width, (v.first+i)%r.Width
			i += copy(r.to[(row-r.from)*r.width+r.offset+value:][:r.Width-value], x[i:])
		}
	}
	return nil
}

// Cells iterates over the rows of columns as text. A missing value is empty. The slice is valid until
// the next iteration. A row group is in memory at a time.
func (f *File) Cells(columns []*Column) iter.Seq2[[]string, error] {
	return func(yield func([]string, error) bool) {
		var r pageReader
		defer r.close()
		for _, g := range f.groups {
			parts := make([]cells, len(columns))
			for i, c := range columns {
				r.reset(f, c, g)
				if err := parts[i].read(&r); err != nil {
					yield(nil, fmt.Errorf("the column %q: %w", c.Name, err))
					return
				}
			}
			var row []string
			for n := range g.rows {
				row = row[:0]
				for i, c := range columns {
					for j := n * c.Width; j < (n+1)*c.Width; j++ {
						row = append(row, parts[i].text(c, j))
					}
				}
				if !yield(row, nil) {
					return
				}
			}
		}
	}
}

// cells are the values of a chunk.
type cells struct {
	raw   []byte
	texts []string
	index []int // in raw and texts, -1: missing; nil: all are present
}

func (c *cells) read(r *pageReader) error {
	if err := r.Readable(); err != nil {
		return err
	}
	seen := map[string]string{} // values of a dictionary share memory
	total := 0
	for v, err := range r.pages() {
		if err != nil {
			return err
		}
		if v.present != nil && c.index == nil {
			c.index = make([]int, v.first, r.chunk.values)
			for i := range c.index {
				c.index[i] = i
			}
		}
		if c.index != nil {
			n := total
			for i := range v.n {
				if v.present != nil && !v.present[i] {
					c.index = append(c.index, -1)
					continue
				}
				c.index = append(c.index, n)
				n++
			}
		}
		total += v.count()
		c.raw = append(c.raw, v.raw...)
		for _, b := range v.texts {
			s, ok := seen[string(b)]
			if !ok {
				s = string(b)
				seen[s] = s
			}
			c.texts = append(c.texts, s)
		}
	}
	return nil
}

// text returns value i.
func (c *cells) text(column *Column, i int) string {
	if c.index != nil {
		if i = c.index[i]; i < 0 {
			return ""
		}
	}
	if column.Text {
		return c.texts[i]
	}
	return column.format(c.raw[i*column.kind.Size:])
}

// format returns the shortest text of a number. Whole numbers have no exponent, because they may be names.
func (c *Column) format(raw []byte) string {
	switch c.kind.Kind {
	case ndarray.Int:
		return strconv.FormatInt(c.kind.Int(raw), 10)
	case ndarray.Uint:
		return strconv.FormatUint(uint64(c.kind.Int(raw)), 10)
	}
	x, verb := c.kind.Float(raw), byte('g')
	if x == math.Trunc(x) && math.Abs(x) < 1<<53 {
		verb = 'f'
	}
	return strconv.FormatFloat(x, verb, -1, max(32, 8*c.kind.Size))
}
