// Tables with the labels of an annotator for each image, or with candidate sets.

package generate

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/data/rawfile"
	"github.com/miplc/miplc/internal/diag"
)

// LabelTable has a value for each image and class: the probabilities given by one annotator, or candidate
// sets as 0 and 1. As CSV:
//
//	image,DEB,LYM,MUC
//	tile-1.png,0.7,0.3,0
//	tile-2.png,,1,
//
// An empty field counts as 0. See rawfile.CSV for separators and line endings.
type LabelTable struct {
	Path    string
	Classes []string
	Images  []string
	Values  []float64      // [images, classes], 0 to 1
	lines   []int          // [images] line of the row
	rows    map[string]int // image -> its row
}

// row returns the values of image i, [classes], sharing memory.
func (t *LabelTable) row(i int) []float64 {
	k := len(t.Classes)
	return t.Values[i*k : (i+1)*k]
}

// Limits for the contents of a file.
const (
	maxClasses = 10_000
	maxBytes   = 1 << 30
	maxValues  = 100_000_000
)

// readTable reads a file. If classes are given, the columns must be these, in any order, and the
// table has them in the given order. It reports all errors together, with lines.
func readTable(path string, classes []string) (t *LabelTable, err error) {
	err = rawfile.ReadCSVFile(path, maxBytes, "image,CLASS,CLASS,...", func(rows *rawfile.CSV) error {
		t, err = decodeTable(rows, classes)
		return err
	})
	return t, err
}

func decodeTable(rows *rawfile.CSV, classes []string) (*LabelTable, error) {
	p := &tableReader{t: &LabelTable{Path: rows.Path, Classes: classes, rows: map[string]int{}}, rows: rows}
	rows.Ragged = func(err error) { p.faults.AddError(diag.Pos{}, err) }
	if p.header() {
		if err := rows.Each(p.row); err != nil {
			p.faults.AddError(diag.Pos{}, err)
		} else if len(p.t.Images) == 0 && len(p.faults) == 0 {
			p.errorf(0, 0, "no rows after the header")
		}
	}
	if len(p.faults) > 0 {
		return nil, p.faults.Err()
	}
	return p.t, nil
}

type tableReader struct {
	t       *LabelTable
	rows    *rawfile.CSV
	columns []int // column -> class
	faults  diag.List
}

func (p *tableReader) errorf(line, col int, format string, args ...any) {
	p.faults.Add(diag.Errorf(diag.Pos{File: p.t.Path, Line: line, Col: col}, format, args...))
}

// header reads the classes. It returns false if no rows can follow.
func (p *tableReader) header() bool {
	row, line := p.rows.Header, p.rows.Line
	if row[0] != "image" {
		p.errorf(line, 1, "the header must start with image, followed by one column a class; it starts with %q", row[0])
		return false
	}
	if n := len(row) - 1; n < 2 || n > maxClasses {
		p.errorf(line, 1, "the header names %s; 2 to %d are needed", diag.Count(n, "class"), maxClasses)
		return false
	}
	known := p.t.Classes
	if known == nil {
		p.t.Classes = make([]string, 0, len(row)-1)
	}
	column := map[string]int{}
	for i, name := range row[1:] {
		_, col := p.rows.FieldPos(i + 1)
		first, twice := column[name]
		switch {
		case name == "" || !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl):
			p.errorf(line, col, "column %d has no usable class name: %q", i+2, name)
		case twice:
			p.errorf(line, col, "the class %q is in columns %d and %d", name, first, i+2)
		case known == nil:
			p.t.Classes = append(p.t.Classes, strings.Clone(name))
			p.columns = append(p.columns, i)
		case !slices.Contains(known, name):
			p.faults.Add(diag.Errorf(diag.Pos{File: p.t.Path, Line: line, Col: col}, "unknown class %q", name).
				WithNote("the classes are %s", diag.Words(known)).WithSuggestion(diag.Suggest(name, known)))
		default:
			p.columns = append(p.columns, slices.Index(known, name))
		}
		column[name] = i + 2
	}
	for _, name := range known {
		if _, ok := column[name]; !ok {
			p.errorf(line, 0, "the class %q has no column; a class that is never chosen needs one too", name)
		}
	}
	return len(p.faults) == 0
}

// row reads one image. It returns an error if no rows can follow.
func (p *tableReader) row(row []string) error {
	line := p.rows.Line
	image := row[0]
	if !data.PlainName(image) || data.MissingMark(image) {
		p.errorf(line, 1, "%q is not a usable image name", image)
		return nil
	}
	if first, twice := p.t.rows[image]; twice {
		p.errorf(line, 1, "the image %q has a second row; the first is in line %d", image, p.t.lines[first])
		return nil
	}
	if len(p.t.Values)+len(p.columns) > maxValues {
		return p.rows.Errorf("the file has more than the limit of %d values", maxValues)
	}
	values := make([]float64, len(p.columns))
	for i, field := range row[1:] {
		_, col := p.rows.FieldPos(i + 1)
		class := p.columns[i]
		v, err := probability(p.rows, field)
		if err != nil {
			p.errorf(line, col, "image %q, class %q: %v", image, p.t.Classes[class], err)
		}
		values[class] = v
	}
	image = strings.Clone(image)
	p.t.rows[image] = len(p.t.Images)
	p.t.Images = append(p.t.Images, image)
	p.t.Values = append(p.t.Values, values...)
	p.t.lines = append(p.t.lines, line)
	return nil
}

func probability(rows *rawfile.CSV, field string) (float64, error) {
	if field == "" {
		return 0, nil
	}
	v, err := rows.Number(field, 64)
	switch {
	case err != nil && !errors.Is(err, strconv.ErrRange):
		return 0, fmt.Errorf("%q is not a number", field)
	case !(v >= 0 && v <= 1):
		return 0, fmt.Errorf("the probability %s is not between 0 and 1", field)
	}
	return v, nil
}
