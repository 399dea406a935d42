package rawfile

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strings"

	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"

	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/infile"
)

// NewCSV reads the rows of a text as spreadsheets, pandas and R write it: in UTF-8, or
// in UTF-16 that says so, with or without a mark in front; lines end in LF, CR LF or
// CR; between fields stands what comes first in the header of comma, semicolon and
// tab. A row shares its memory with the next. More than max bytes, and a line of more
// than maxLine, are errors of Read.
func NewCSV(r io.Reader, max int64) *csv.Reader {
	return CSVRows(CSVText(r, TooLargeError{What: "the text", Max: max, Fixed: true}))
}

// csvText is the text of NewCSV in UTF-8, without a mark, its lines ended by LF.
func CSVText(r io.Reader, limit TooLargeError) *bufio.Reader {
	plain := transform.NewReader(Bound(r, limit.Max, &limit), unicode.BOMOverride(transform.Nop))
	return bufio.NewReaderSize(&lineReader{r: plain}, 1<<16)
}

// packedText says what a text is that begins like a packed file; "" for others.
func PackedText(text *bufio.Reader) string {
	start, _ := text.Peek(4)
	switch {
	case bytes.HasPrefix(start, []byte("\x1f\x8b")):
		return "packed by gzip; a name that ends in .csv.gz says so"
	case bytes.Equal(start, []byte("PK\x03\x04")):
		return "a zip archive or a workbook of Excel; unpack it, or save the sheet as CSV"
	}
	return ""
}

// csvRows reads rows from the header on.
func CSVRows(text *bufio.Reader) *csv.Reader {
	rows := csv.NewReader(text)
	rows.Comma = separator(text)
	rows.ReuseRecord = true
	return rows
}

// separators are what may stand between fields.
const separators = ",;\t"

// separator is what stands between the fields of the line ahead, or of the part of it
// that is looked at.
func separator(text *bufio.Reader) rune {
	ahead, _ := text.Peek(text.Size())
	line, _, _ := bytes.Cut(ahead, []byte("\n"))
	if i := bytes.IndexAny(line, separators); i >= 0 {
		return rune(line[i])
	}
	return ','
}

// CSVNumber is the text of a number for strconv. Where semicolons stand between the
// fields, spreadsheets write a comma for the decimal point.
func CSVNumber(rows *csv.Reader, field string) string {
	field = strings.TrimSpace(field)
	if rows.Comma == ';' {
		field = strings.Replace(field, ",", ".", 1)
	}
	return field
}

// CSVError words an error of reading rows from a file whose first lines, skip of them,
// were read by other means. Where a quoted field goes on over several lines its quote
// is most likely not closed: the place is the row that opens it.
func CSVError(path string, skip int, err error) diag.Diagnostic {
	syntax, ok := errors.AsType[*csv.ParseError](err)
	switch {
	case !ok:
		return diag.Errorf(diag.Pos{File: path}, "%v", infile.CutShort(err))
	case syntax.Line > syntax.StartLine:
		return diag.Errorf(diag.Pos{File: path, Line: syntax.StartLine + skip}, "not well-formed CSV: a quote that opens in this row is not closed").
			WithNote("a quote inside of a field is written twice")
	}
	return diag.Errorf(diag.Pos{File: path, Line: syntax.Line + skip, Col: syntax.Column}, "not well-formed CSV: %v", syntax.Err)
}

// maxLine is the longest line of a CSV file; a splitter of lines into fields
// needs many times the memory of a line.
const maxLine = 8 << 20

// maxFields bounds the separators of a line, and with them the fields: a field takes many
// times the memory of its text. An image of 224x224 pixels in three colours has 150,528.
const maxFields = 1 << 19

// lineReader passes text on with LF at the end of each line, where CR LF or CR may
// have been, and fails at a line of more than maxLine bytes.
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

// unify makes all ends of lines LF, in place, and returns how many bytes are left.
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
			return fmt.Errorf("a line is longer than %s", ByteSize(maxLine))
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
