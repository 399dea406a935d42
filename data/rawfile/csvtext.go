// CSV text as spreadsheets, pandas and R write it.

package rawfile

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"

	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/fileio"
	"github.com/miplc/miplc/internal/resources"
)

// CSV reads rows with a header from text as spreadsheets, pandas and R write it: UTF-8, or UTF-16 with
// a byte order mark; lines end in LF, CR LF or CR; the separator is the first comma, semicolon or
// tab of the header outside of quotes. Fields have no spaces around them. Rows without any text are skipped, and
// columns at the end without a name and any text.
type CSV struct {
	*csv.Reader
	Path   string
	Header []string
	Line   int         // of the row that was read last
	Ragged func(error) // takes the errors of rows with a wrong number of fields; nil: Each returns the first
	Short  bool        // rows may lack fields at their end, which are then empty, or all text
	Fields int         // number of fields of the row that was read last, without those that it lacks

	before  int      // number of lines before the header
	row     []string // that was read last
	padding int      // columns without a name at the end of the header
}

// ReadCSVFile calls read with the rows of a file, see NewCSV. The file may be packed by gzip.
func ReadCSVFile(path string, max int64, header string, read func(*CSV) error) error {
	f, _, err := fileio.Open(path)
	if err != nil {
		return FileError(path, err)
	}
	defer f.Close()
	text, err := Unpack(f, path)
	if err != nil {
		return err
	}
	c, err := NewCSV(text, path, max, header)
	if err != nil {
		return err
	}
	return read(c)
}

// NewCSV reads the header of a file. header is an example for the error of an empty file. Reading fails
// after max bytes, and for too long lines.
func NewCSV(r io.Reader, path string, max int64, header string) (*CSV, error) {
	text := CSVText(r, FixedLimit("the text", max))
	return ReadCSV(text, path, SkipSeparatorLine(text), header)
}

// ReadCSV is NewCSV for the rest of a text, after some lines before the header.
func ReadCSV(text *bufio.Reader, path string, before int, header string) (*CSV, error) {
	c := &CSV{Reader: csv.NewReader(text), Path: path, before: before}
	c.Comma, c.ReuseRecord, c.FieldsPerRecord = separator(text), true, -1 // Next counts them, for a better message
	row, err := c.Read()
	switch {
	case err == io.EOF:
		return nil, diag.Errorf(diag.Pos{File: path}, "the file is empty; a header %s is needed", header)
	case err != nil:
		return nil, CSVError(path, before, err)
	}
	line, _ := c.FieldPos(0)
	c.Header, c.Line = slices.Clone(trim(row)), line+before
	for n := len(c.Header); n > 1 && c.Header[n-1] == ""; n-- {
		c.Header = c.Header[:n-1]
		c.padding++
	}
	return c, nil
}

// SkipSeparatorLine skips a first line such as "sep=;", which names the separator for Excel, and returns the number of
// skipped lines.
func SkipSeparatorLine(text *bufio.Reader) int {
	const mark = "sep="
	start, _ := text.Peek(len(mark) + 2)
	if len(start) < len(mark)+2 || !strings.EqualFold(string(start[:len(mark)]), mark) || start[len(mark)+1] != '\n' {
		return 0
	}
	_, _ = text.Discard(len(start)) // which Peek has read
	return 1
}

// Each calls f with each row, which shares its memory with the one after it, until f returns an error. It returns
// that error, or that of a row with a wrong number of fields if Ragged is nil.
func (c *CSV) Each(f func(row []string) error) error {
	for {
		row, err := c.Read()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return CSVError(c.Path, c.before, err)
		}
		line, _ := c.FieldPos(0)
		if trim(row); !c.Short && !slices.ContainsFunc(row, isText) {
			continue
		}
		if n := len(c.Header); len(row) == n+c.padding && c.padding > 0 {
			if i := slices.IndexFunc(row[n:], isText); i >= 0 {
				return diag.Errorf(diag.Pos{File: c.Path, Line: line + c.before}, "field %d is %q, but its column has no name in "+
					"the header", n+i+1, row[n+i])
			}
			row = row[:n]
		}
		for c.Fields = len(row); c.Short && len(row) < len(c.Header); {
			row = append(row, "")
		}
		if c.row, c.Line = row, line+c.before; len(row) != len(c.Header) {
			if err = c.Errorf("the row has %d fields, the header %d", len(row), len(c.Header)); c.Ragged != nil {
				c.Ragged(err)
				continue
			}
		} else {
			err = f(row)
		}
		if err != nil {
			return err
		}
	}
}

// trim removes the spaces around the fields of a row.
func trim(row []string) []string {
	for i, field := range row {
		row[i] = strings.TrimSpace(field)
	}
	return row
}

func isText(field string) bool { return field != "" }

// Errorf returns an error in the row that was read last.
func (c *CSV) Errorf(format string, args ...any) diag.Diagnostic {
	return diag.Errorf(c.Pos(), format, args...)
}

// Pos returns the position of the row that was read last.
func (c *CSV) Pos() diag.Pos { return diag.Pos{File: c.Path, Line: c.Line} }

// Has reports whether the file has columns with all these names, see Column.
func (c *CSV) Has(names ...string) bool {
	return !slices.ContainsFunc(names, func(name string) bool { return c.Column(name) < 0 })
}

// Field returns a field of the row that was read last, "" if the file does not have the column.
func (c *CSV) Field(column string) string {
	if i := c.Column(column); i >= 0 {
		return c.row[i]
	}
	return ""
}

// Column returns the column with a name, if necessary in another case or Unicode form, or -1.
func (c *CSV) Column(name string) int {
	if i := slices.Index(c.Header, name); i >= 0 || name == "" {
		return i
	}
	name = diag.Canonical(name)
	return slices.IndexFunc(c.Header, func(h string) bool { return strings.EqualFold(diag.Canonical(h), name) })
}

// CSVText converts text of CSV to UTF-8 without byte order mark and with LF at the end of
// lines.
func CSVText(r io.Reader, limit *resources.MemoryError) *bufio.Reader {
	plain := transform.NewReader(Bound(r, int64(limit.Budget.Bytes), limit), unicode.BOMOverride(transform.Nop))
	return bufio.NewReaderSize(&lineReader{r: plain}, 1<<16)
}

// separators are the possible separators of fields.
const separators = ",;\t"

// separator returns the separator of the next line, or of the part of it that is in the buffer.
func separator(text *bufio.Reader) rune {
	ahead, _ := text.Peek(text.Size())
	line, _, _ := bytes.Cut(ahead, []byte("\n"))
	quoted := false
	for _, b := range line {
		switch {
		case b == '"':
			quoted = !quoted
		case !quoted && strings.IndexByte(separators, b) >= 0:
			return rune(b)
		}
	}
	return ','
}

// Number parses a field as a number of bits bits, with the errors of strconv.ParseFloat. If fields
// are separated by semicolons, spreadsheets write a decimal comma. An underscore is an error: it
// joins two numbers, such as the row and the column of a tile, and strconv would ignore it.
func (c *CSV) Number(field string, bits int) (float64, error) {
	if strings.Contains(field, "_") {
		return 0, &strconv.NumError{Func: "ParseFloat", Num: field, Err: strconv.ErrSyntax}
	}
	if c.Comma == ';' {
		field = strings.Replace(field, ",", ".", 1)
	}
	return strconv.ParseFloat(field, bits)
}

// CSVError describes an error of reading rows. skip is the number of lines that were read before
// the rows. If a quoted field spans several lines, its quote is probably not closed: the position
// is the row that opens it.
func CSVError(path string, skip int, err error) diag.Diagnostic {
	syntax, ok := errors.AsType[*csv.ParseError](err)
	switch {
	case !ok:
		return diag.Errorf(diag.Pos{File: path}, "%v", fileio.CutShort(err))
	case syntax.Line > syntax.StartLine:
		return diag.Errorf(diag.Pos{File: path, Line: syntax.StartLine + skip},
			"not well-formed CSV: a quote that opens in this row is not closed").
			WithNote("a quote inside of a field is written twice")
	}
	return diag.Errorf(diag.Pos{File: path, Line: syntax.Line + skip, Col: syntax.Column}, "not well-formed CSV: %v",
		syntax.Err)
}

// maxLine is the maximum length of a line in bytes. Splitting a line into fields takes many times
// its memory.
const maxLine = 8 << 20

// maxFields is the maximum number of separators of a line, because a field takes many times the
// memory of its text. An image of 224x224 pixels in three colours has 150,528 fields.
const maxFields = 1 << 19

// lineReader replaces CR LF and CR at the end of lines by LF, and fails for lines that are too
// long.
type lineReader struct {
	r    io.Reader
	cr   bool // the text so far ends in CR
	line int  // bytes of the line so far
	cuts int  // separators of the line so far
}

func (l *lineReader) Read(p []byte) (int, error) {
	for {
		n, err := l.r.Read(p)
		n = l.unify(p[:n])
		if long := l.measure(p[:n]); long != nil {
			return 0, long
		}
		if n > 0 || err != nil || len(p) == 0 {
			return n, err
		}
	}
}

// unify replaces all line ends in p by LF, in place, and returns the number of remaining bytes.
func (l *lineReader) unify(p []byte) int {
	if !l.cr && bytes.IndexByte(p, '\r') < 0 {
		return len(p)
	}
	n := 0
	for _, c := range p {
		was := l.cr
		l.cr = c == '\r'
		switch {
		case l.cr:
			c = '\n'
		case was && c == '\n':
			continue
		}
		p[n] = c
		n++
	}
	return n
}

func (l *lineReader) measure(p []byte) error {
	for {
		i := bytes.IndexByte(p, '\n')
		end := i
		if i < 0 {
			end = len(p)
		}
		if l.line += end; l.line > maxLine {
			return fmt.Errorf("a line is longer than %s", resources.Bytes(maxLine))
		}
		for _, separator := range []byte(separators) {
			l.cuts += bytes.Count(p[:end], []byte{separator})
		}
		if l.cuts > maxFields {
			return fmt.Errorf("a line has more than %d fields", maxFields)
		}
		if i < 0 {
			return nil
		}
		l.line, l.cuts, p = 0, 0, p[i+1:]
	}
}
