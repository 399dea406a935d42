// Package parquet reads columns of numbers and text from the Parquet files that pandas, pyarrow,
// polars, DuckDB and Spark write by default: plain, dictionary and byte-stream-split encoding,
// compressed by Snappy, gzip or Zstandard or not, and lists of one length.
//
// Files come from anywhere, so each length is checked before memory is allocated for it. The
// library parquet-go allocates the lengths that a file claims, up to gigabytes for a damaged file of
// 3 KB. Numbers of fields are those of parquet.thrift in the repository apache/parquet-format.
package parquet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/miplc/miplc/internal/ndarray"
)

// File is an open Parquet file.
type File struct {
	Rows    int
	Columns []*Column

	r      io.ReaderAt
	size   int64
	groups []rowGroup
}

// Column is a column of a File.
type Column struct {
	Name string
	// Text reports that the values are strings.
	Text bool
	// Width is the number of values in a row: the length of the lists, 1 for other columns.
	Width int
	List  bool // also if Width is 1

	index          int // of the chunks in a rowGroup
	kind           ndarray.Number
	physical       int64
	maxDef, maxRep int   // levels of a value that is present
	unsupported    error // nil if the column can be read
}

// rowGroup is a part of the rows. Each column stores it in a chunk.
type rowGroup struct {
	rows   int
	chunks []chunk
}

// chunk is the part of a column in a row group.
type chunk struct {
	codec      int64
	values     int
	start, end int64 // in the file
}

var (
	errDamaged = errors.New("the Parquet file is damaged or cut short")
	le         = binary.LittleEndian
)

const (
	magic = "PAR1"
	// maxExpansion is the maximum number of values per byte of a file. A file with 1,000,000
	// equal rows can be smaller than 1 KB.
	maxExpansion = 4096
	spareValues  = 1 << 20
	maxColumns   = 1 << 17
	maxFooter    = 256 << 20
)

// Open reads the metadata of a file of size bytes.
func Open(r io.ReaderAt, size int64) (*File, error) {
	const frame = 12 // magic, length of the metadata and magic
	var end [8]byte
	if size < frame {
		return nil, errors.New("not a Parquet file")
	}
	if err := readAt(r, end[:], size-8); err != nil {
		return nil, err
	}
	switch string(end[4:]) {
	case magic:
	case "PARE":
		return nil, errors.New("the Parquet file is encrypted, which is not supported")
	default:
		return nil, errors.New("not a Parquet file, or cut short")
	}
	length := int64(le.Uint32(end[:]))
	if length > min(size-frame, maxFooter) {
		return nil, errDamaged
	}
	footer := make([]byte, length)
	if err := readAt(r, footer, size-8-length); err != nil {
		return nil, err
	}
	f := &File{r: r, size: size}
	return f, f.readFooter(footer)
}

// readAt fills b. The end of the file is an error: its size was known when it was opened.
func readAt(r io.ReaderAt, b []byte, at int64) error {
	_, err := io.ReadFull(io.NewSectionReader(r, at, int64(len(b))), b)
	return readError(err)
}

// readFooter reads the FileMetaData.
func (f *File) readFooter(b []byte) error {
	t := &thrift{b: b}
	var schema []element
	t.object(func(id int, kind byte) {
		switch id {
		case 2:
			t.list(kind, func(byte) {
				if schema = append(schema, readElement(t)); len(schema) > maxColumns {
					t.fail()
				}
			})
		case 4:
			t.list(kind, func(byte) {
				if f.groups = append(f.groups, readGroup(t)); len(f.groups[len(f.groups)-1].chunks) == 0 {
					t.fail()
				}
			})
		default:
			t.skip(kind)
		}
	})
	if t.failed || len(schema) == 0 {
		return errDamaged
	}
	s := &schemaReader{rest: schema[1:]}
	for range schema[0].children {
		if err := s.column(); err != nil {
			return err
		}
	}
	f.Columns = s.columns
	return f.check()
}

func readGroup(t *thrift) (g rowGroup) {
	t.object(func(id int, kind byte) {
		switch id {
		case 1:
			t.list(kind, func(byte) {
				const smallest = 16 // bytes; shorter ones would take many times their size in memory
				before := len(t.b)
				if g.chunks = append(g.chunks, readChunk(t)); before-len(t.b) < smallest {
					t.fail()
				}
			})
		case 3:
			g.rows = int(t.int(kind))
		default:
			t.skip(kind)
		}
	})
	return g
}

// readChunk reads a ColumnChunk. end is -1 if its metadata are elsewhere.
func readChunk(t *thrift) chunk {
	c := chunk{end: -1}
	var size, data, dictionary int64
	t.object(func(id int, kind byte) {
		if id != 3 || kind != thriftStruct {
			t.skip(kind)
			return
		}
		t.object(func(id int, kind byte) {
			switch id {
			case 4:
				c.codec = t.int(kind)
			case 5:
				c.values = int(t.int(kind))
			case 7:
				size = t.int(kind)
			case 9:
				data = t.int(kind)
			case 11:
				dictionary = t.int(kind)
			default:
				t.skip(kind)
			}
		})
		c.start = data
		if dictionary > 0 && dictionary < data { // some writers store 0 or the offset of the data
			c.start = dictionary
		}
		if c.start >= 0 && size >= 0 {
			c.end = c.start + size
		}
	})
	return c
}

// check checks the row groups and sets Rows and the widths of the columns.
func (f *File) check() error {
	values, most := 0, maxExpansion*int(f.size)+spareValues
	perColumn := make([]int, len(f.Columns))
	for _, g := range f.groups {
		if len(g.chunks) != len(f.Columns) || g.rows < 0 || g.rows > most-f.Rows {
			return errDamaged
		}
		f.Rows += g.rows
		for i, c := range g.chunks {
			if c.start < 0 || c.end < c.start || c.end > f.size || c.values < 0 || c.values > most-values {
				return errDamaged
			}
			if !f.Columns[i].List && c.values != g.rows {
				return errDamaged
			}
			values += c.values
			perColumn[i] += c.values
		}
	}
	for i, c := range f.Columns {
		if c.Width = 1; !c.List || f.Rows == 0 {
			continue
		}
		c.Width = max(1, perColumn[i]/f.Rows)
		for _, g := range f.groups {
			if g.chunks[i].values != g.rows*c.Width && c.unsupported == nil {
				c.unsupported = errLists
			}
		}
	}
	return nil
}

var errLists = errors.New("its lists have different lengths or are empty")

// Readable returns an error if the values of the column are not numbers or text, or its lists do not
// have one length.
func (c *Column) Readable() error {
	if c.unsupported != nil {
		return fmt.Errorf("the column %q cannot be read: %w", c.Name, c.unsupported)
	}
	return nil
}
