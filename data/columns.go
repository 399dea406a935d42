package data

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/miplc/miplc/internal/diag"
)

// Columns declares columns of CSV files that are not recognised by their names.
type Columns struct {
	Ignore   []string // columns that are not read
	Features []string // columns that are features although their names say otherwise
}

// suspects are names, in lower case and without spaces and punctuation, of columns that
// hold numbers but describe where an instance comes from. A model must not learn from them.
var suspects = []string{"", "x", "y", "z", "xcoord", "ycoord", "coordx", "coordy", "xpos", "ypos", "posx", "posy", "centroidx", "centroidy",
	"row", "col", "column", "left", "top", "lat", "latitude", "lon", "lng", "longitude", "date", "time", "timestamp", "frame",
	"id", "index", "idx", "unnamed0", "patient", "subject", "person", "case", "slide", "image", "tile", "instance", "sample", "donor",
	"fold", "split", "part", "group", "batch", "site", "center", "centre", "hospital", "label", "class", "target"}

// suspect reports whether a column is named like an identifier or a coordinate.
func suspect(name string) bool {
	lower := strings.ToLower(strings.TrimSpace(name))
	plain := strings.NewReplacer(" ", "", "_", "", "-", "", ".", "", ":", "").Replace(lower)
	return slices.Contains(suspects, plain) || strings.HasSuffix(lower, "_id") || strings.HasSuffix(lower, "-id") || strings.HasSuffix(lower, " id")
}

// readFeatures finds the columns of features in a header. All columns after the first are
// features but for those to ignore. Names of identifiers and coordinates must be declared.
func (c *csvReader) readFeatures(header []string, line int) error {
	var unclear []string
	for i, name := range header[c.first:] {
		name = strings.TrimSpace(name)
		switch {
		case slices.Contains(c.declared.Ignore, name):
			continue
		case suspect(name) && !slices.Contains(c.declared.Features, name):
			unclear = append(unclear, name)
		}
		c.columns, c.names = append(c.columns, c.first+i), append(c.names, strings.Clone(name))
	}
	if len(unclear) > 0 {
		return c.undeclared(line, unclear, "named like an identifier or a coordinate, not like a feature")
	}
	if len(c.columns) == 0 {
		return c.errorf(line, "the header names no feature after %s", header[c.first-1])
	}
	return nil
}

// undeclared reports columns that are features or not, which the user has to say.
func (c *csvReader) undeclared(line int, names []string, why string) error {
	const most = 10
	quoted := make([]string, 0, most)
	for _, name := range names[:min(most, len(names))] {
		quoted = append(quoted, strconv.Quote(name))
	}
	list := strings.Join(quoted, ", ")
	if len(names) > most {
		list += ", ..."
	}
	word := "column"
	if len(names) > 1 {
		word = "columns"
	}
	return diag.Errorf(diag.Pos{File: c.path, Line: line}, "%s %s: %s", word, list, why).
		WithNote("leave columns out with --ignore-columns %s", strings.Join(names[:min(most, len(names))], ",")).
		WithNote("--feature-columns takes columns of numbers as features whatever their names are")
}

// checkText reports columns whose first value is text, which no feature can be.
func (c *csvReader) checkText(row []string, line int) error {
	var text []string
	for j, at := range c.columns {
		field := strings.TrimSpace(row[at])
		if !strings.ContainsFunc(field, unicode.IsLetter) || missing[strings.ToLower(field)] {
			continue // readRow says what is wrong with a number
		}
		if _, err := strconv.ParseFloat(CSVNumber(c.rows, field), 64); err == nil || errors.Is(err, strconv.ErrRange) {
			continue
		}
		text = append(text, c.names[j])
	}
	if len(text) == 0 {
		return nil
	}
	return c.undeclared(line, text, "its values are text, and features are numbers")
}
