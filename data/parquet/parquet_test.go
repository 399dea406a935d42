package parquet

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/internal/testsupport"
)

const testRows = 37

func open(t testing.TB, name string) *File {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	f, err := Open(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(name, err)
	}
	return f
}

func (f *File) column(t testing.TB, name string) *Column {
	t.Helper()
	i := slices.IndexFunc(f.Columns, func(c *Column) bool { return c.Name == name })
	if i < 0 {
		t.Fatalf("no column %q", name)
	}
	return f.Columns[i]
}

// expected returns row i of a column of testdata/make.py.
func expected(name string, i int) []float32 {
	value := func(j int) float32 { return float32((5*i+j)%23 - 7) }
	switch name {
	case "flag":
		return []float32{map[bool]float32{true: 1}[i%3 == 0]}
	case "list":
		return []float32{value(0), value(1), value(2)}
	case "list of halves":
		return []float32{float32(i), float32(i + 1)}
	}
	j := slices.Index(strings.Fields("f2 f4 f8 i1 i2 i4 i8 u1 u2 u4 u8"), name)
	if x := value(j); name[0] != 'u' {
		return []float32{x}
	}
	return []float32{value(j) + 7}
}

func TestReadRows(t *testing.T) {
	for _, name := range strings.Fields("snappy gzip zstd pages polars") {
		f := open(t, name+".parquet")
		var numbers []*Column
		for _, c := range f.Columns {
			if err := c.Readable(); err != nil {
				t.Errorf("%s: %v", name, err)
			} else if !c.Text {
				numbers = append(numbers, c)
			}
		}
		if f.Rows != testRows || len(numbers) < 12 {
			t.Fatalf("%s: %d rows, %d columns", name, f.Rows, len(numbers))
		}
		var width int
		var want []float32
		for i := range testRows {
			for _, c := range numbers {
				want = append(want, expected(c.Name, i)...)
			}
			if i == 0 {
				width = len(want)
			}
		}
		for from := 0; from <= testRows; from += 3 {
			for until := from; until <= testRows; until += 4 {
				got := make([]float32, (until-from)*width)
				if err := f.ReadRows(got, from, numbers); err != nil || !slices.Equal(got, want[from*width:until*width]) {
					t.Fatalf("%s, rows %d to %d: %v\n%v\n%v", name, from, until, err, got, want[from*width:until*width])
				}
			}
		}
		if err := f.ReadRows(make([]float32, width), testRows, numbers); err == nil {
			t.Errorf("%s: a row after the last one was read", name)
		}
	}
}

func TestCells(t *testing.T) {
	for _, name := range strings.Fields("snappy gzip zstd pages polars") {
		f, n := open(t, name+".parquet"), 0
		columns := []*Column{f.column(t, "bag"), f.column(t, "list"), f.column(t, "i8"), f.column(t, "f8")}
		for row, err := range f.Cells(columns) {
			want := []string{fmt.Sprint("b", n/4)}
			for _, c := range columns[1:] {
				for _, x := range expected(c.Name, n) {
					want = append(want, fmt.Sprint(x))
				}
			}
			if err != nil || !slices.Equal(row, want) {
				t.Fatalf("%s, row %d: %v, %v, expected %v", name, n, row, err, want)
			}
			n++
		}
		if n != testRows {
			t.Errorf("%s: %d rows", name, n)
		}
	}
	f, n := open(t, "others.parquet"), 0
	for row, err := range f.Cells([]*Column{f.column(t, "missing")}) {
		want := fmt.Sprint(n)
		if n == 5 {
			want = ""
		}
		if n++; err != nil || row[0] != want {
			t.Fatalf("row %d: %v, %v", n, row, err)
		}
	}
}

// Unsupported features give an error that names them.
func TestUnsupported(t *testing.T) {
	for _, c := range []struct{ file, column, want string }{
		{"others", "when", `"when" cannot be read: it contains times`},
		{"others", "date", "contains dates"},
		{"others", "decimal", "contains decimal numbers"},
		{"others", "struct", "contains nested values"},
		{"others", "lists", "lists of lists"},
		{"others", "ragged", "its lists have different lengths"},
		{"others", "missing", `the column "missing": a row has no value`},
		{"others", "text", "contains text"},
		{"others", "delta", "the encoding DELTA_BINARY_PACKED, which is not supported; write the file with the encodings"},
		{"lz4", "f", "the compression LZ4, which is not supported; write the file with compression='zstd'"},
	} {
		f := open(t, c.file+".parquet")
		if err := f.ReadRows(make([]float32, testRows), 0, []*Column{f.column(t, c.column)}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, expected %q", c.column, err, c.want)
		}
	}
	for _, content := range []string{"", "text", strings.Repeat(magic, 3), magic + "\xff\xff\xff\xff" + magic} {
		if _, err := Open(strings.NewReader(content), int64(len(content))); err == nil {
			t.Errorf("%q was opened", content)
		}
	}
}

// FuzzFile reads damaged files as numbers and as text.
func FuzzFile(f *testing.F) {
	testsupport.AddFiles(f, "testdata/*.parquet")
	f.Fuzz(func(t *testing.T, b []byte) {
		file, err := Open(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			return
		}
		for _, c := range file.Columns[:min(len(file.Columns), 50)] {
			if c.Readable() != nil || file.Rows == 0 {
				continue
			}
			rows := min(file.Rows, 1<<20/c.Width)
			if !c.Text {
				file.ReadRows(make([]float32, rows*c.Width), file.Rows-rows, []*Column{c})
			}
			n := 0
			for row, err := range file.Cells([]*Column{c}) {
				if n++; err == nil && len(row) != c.Width {
					t.Fatalf("a row with %d values of %d", len(row), c.Width)
				}
				if err != nil || n == 1000 {
					break
				}
			}
		}
	})
}

// Names that pandas stored as numbers, because some are missing, keep their digits.
func TestWholeNumbersAsText(t *testing.T) {
	c := Column{kind: ndarray.Number{Kind: ndarray.Float, Size: 8}}
	for x, want := range map[float64]string{1: "1", 1234567: "1234567", -1e9: "-1000000000", 0.5: "0.5", 1e300: "1e+300", 1e-9: "1e-09"} {
		if got := c.format(binary.LittleEndian.AppendUint64(nil, math.Float64bits(x))); got != want {
			t.Errorf("%v: %s, expected %s", x, got, want)
		}
	}
}
