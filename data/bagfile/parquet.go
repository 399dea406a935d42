package bagfile

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/data/parquet"
	"github.com/miplc/miplc/data/rawfile"
	"github.com/miplc/miplc/internal/diag"
)

// decodeParquet reads a table with one row per instance. It becomes CSV text, so that columns, labels
// and errors have the same meaning in both formats. The line of an error is the number of the row.
func decodeParquet(r io.ReaderAt, size int64, path string, o Options) (*data.Dataset, error) {
	f, err := parquet.Open(r, size)
	if err != nil {
		return nil, diag.Errorf(diag.Pos{File: path}, "%v", err)
	}
	columns, err := o.Columns.ofParquet(f, path)
	if err != nil {
		return nil, err
	}
	text := &cellText{header: cellNames(columns)}
	next, stop := iter.Pull2(f.Cells(columns))
	defer stop()
	text.next = next
	c := newCSVReader(path, o)
	c.linesBefore = -1 // the header is not a row
	c.rows = csv.NewReader(rawfile.CSVText(text, rawfile.TooLargeError{What: "the text of the table", Max: o.MaxBytes.Bytes()}))
	c.rows.ReuseRecord = true
	return c.decode(o)
}

// ofParquet returns the columns to read: roles first, without ignored ones. If a model determines the
// columns, others need not be readable.
func (c *Columns) ofParquet(f *parquet.File, path string) ([]*parquet.Column, error) {
	var out []*parquet.Column
	for _, column := range f.Columns {
		if slices.Contains(c.Ignore, column.Name) {
			continue
		}
		err := column.Readable()
		isLabels := strings.EqualFold(column.Name, cmp.Or(c.Roles.Candidates, roleNames[roleCandidates])) ||
			strings.EqualFold(column.Name, cmp.Or(c.Roles.Label, roleNames[roleLabel]))
		if err == nil && column.List && isLabels { // its names would be those of features
			err = fmt.Errorf("the column %q contains lists", column.Name)
		}
		if err == nil {
			out = append(out, column)
		} else if c.ModelFeatures == nil {
			d := diag.Errorf(diag.Pos{File: path}, "%v", err)
			if isLabels {
				return nil, d.WithNote("write the labels of a bag as text, separated by spaces: table[%q].map(lambda names: \" \".join(map(str, names))) in pandas", column.Name)
			}
			return nil, d.WithNote("leave it out with %s, or data.columns.ignore in the spec", ignoring(column.Name))
		}
	}
	return out, nil
}

// cellNames returns the names of the fields of a row. The values of a list named features are
// features_1, features_2, ...
func cellNames(columns []*parquet.Column) []string {
	var names []string
	for _, c := range columns {
		if !c.List {
			names = append(names, c.Name)
			continue
		}
		for i := range c.Width {
			names = append(names, fmt.Sprintf("%s_%d", c.Name, i+1))
		}
	}
	return names
}

// cellText is a table as CSV text.
type cellText struct {
	header []string
	next   func() ([]string, error, bool)
	text   bytes.Buffer
}

func (t *cellText) Read(p []byte) (int, error) {
	for t.text.Len() == 0 {
		row := t.header
		if t.header = nil; row == nil {
			var err error
			var ok bool
			if row, err, ok = t.next(); err != nil {
				return 0, err
			} else if !ok {
				return 0, io.EOF
			}
		}
		w := csv.NewWriter(&t.text)
		w.Write(row) // a buffer does not fail
		w.Flush()
	}
	return t.text.Read(p)
}

// openParquet opens a file with the instances of one bag: a column of lists, or all columns of
// numbers.
func (f *arrayFile) openParquet() error {
	p, err := parquet.Open(f.r, f.size)
	if err != nil {
		return err
	}
	var lists []string
	byName := map[string]*parquet.Column{}
	for _, c := range p.Columns {
		if byName[c.Name] = c; c.List {
			lists = append(lists, c.Name)
		}
	}
	of := func(columns ...*parquet.Column) (array, error) {
		width := 0
		for _, c := range columns {
			if err := c.Readable(); err != nil {
				return array{}, err
			}
			width += c.Width
		}
		return array{shape: []int{p.Rows, width}, rows: &parquetRows{p, columns}, piece: p.Rows}, nil
	}
	f.names = func() ([]string, error) { return lists, nil }
	f.find = func(name string) (array, error) {
		c := byName[name]
		switch {
		case c != nil && c.List:
			return of(c)
		case name == coordsName && byName["x"] != nil && byName["y"] != nil:
			return of(byName["x"], byName["y"])
		case name == featuresName && len(lists) == 0:
			columns, err := featureColumns(p)
			if err != nil {
				return array{}, err
			}
			a, err := of(columns...)
			for _, column := range columns {
				a.columns = append(a.columns, strings.TrimSpace(column.Name))
			}
			return a, err
		}
		return array{}, errNoArray
	}
	return nil
}

// featureColumns returns all columns except coordinates.
func featureColumns(p *parquet.File) (out []*parquet.Column, err error) {
	for _, c := range p.Columns {
		switch {
		case c.Name == "x" || c.Name == "y":
		case c.Text:
			return nil, fmt.Errorf("the column %q contains text, and features are numbers; write the file without it", c.Name)
		case suspect(c.Name):
			return nil, fmt.Errorf("the column %q is named like an identifier or a coordinate, not like a feature; write the file without it", c.Name)
		default:
			out = append(out, c)
		}
	}
	if out == nil {
		return nil, errors.New("the file has no columns of features")
	}
	return out, nil
}

// parquetRows reads rows of columns.
type parquetRows struct {
	file    *parquet.File
	columns []*parquet.Column
}

func (p *parquetRows) ReadRows(to []float32, from int) error {
	return p.file.ReadRows(to, from, p.columns)
}
