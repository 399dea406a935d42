package language

import (
	"math"
	"strconv"
	"strings"
)

// valueType says how a value of the language is written and decoded.
type valueType uint8

const (
	tString valueType = iota
	tInt
	tFloat
	tBool
	tInts       // list of integers
	tExtent     // integer or name of an extent
	tExtents    // list of those
	tExpression // equation
	tSection    // map with the keys of row.rows
	tBlocks     // the lists and maps below have a reader each in model.go
	tSizes
	tNumbers
	tParams
	tLet
	tLosses
	tLearner // learner.go
)

// row is one key of the language: all that reader, writer, schema and
// reference know of it.
type row struct {
	name     string
	typ      valueType
	def      string // default as written in YAML; "" for none
	required bool
	main     bool // "word: value" sets this argument of a block or loss
	in       span
	choices  []string
	doc      string
	rows     []row            // of a section
	to       func(*Spec) any  // pointer to the Value that the key sets; nil for arguments
	holds    func(*Spec) bool // whether the key says anything in this spec; nil: always
}

// span is a range of numbers; the zero span does not limit.
type span struct {
	lo, hi         float64
	loOpen, hiOpen bool
}

func atLeast(lo float64) span     { return span{lo: lo, hi: math.Inf(1)} }
func above(lo float64) span       { return span{lo: lo, hi: math.Inf(1), loOpen: true} }
func between(lo, hi float64) span { return span{lo: lo, hi: hi} }
func within(lo, hi float64) span  { return span{lo: lo, hi: hi, loOpen: true, hiOpen: true} }
func upTo(lo, hi float64) span    { return span{lo: lo, hi: hi, hiOpen: true} }
func shareOf(hi float64) span     { return span{lo: 0, hi: hi, loOpen: true} }

func (s span) limited() bool { return s != span{} }

func (s span) has(v float64) bool {
	if !s.limited() {
		return true
	}
	return (v > s.lo || v == s.lo && !s.loOpen) && (v < s.hi || v == s.hi && !s.hiOpen)
}

// String says the range in words: "at least 1", "between 0 and 1 (1 excluded)".
func (s span) String() string {
	switch {
	case math.IsInf(s.hi, 1) && s.loOpen:
		return "greater than " + decimal(s.lo)
	case math.IsInf(s.hi, 1):
		return "at least " + decimal(s.lo)
	}
	var out []string
	if s.loOpen {
		out = append(out, decimal(s.lo))
	}
	if s.hiOpen {
		out = append(out, decimal(s.hi))
	}
	text := "between " + decimal(s.lo) + " and " + decimal(s.hi)
	if len(out) > 0 {
		text += " (" + strings.Join(out, " and ") + " excluded)"
	}
	return text
}

func decimal(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// Most extents and counts are bounded, so that a slip of the keyboard is an
// error here rather than an allocation that fails later.
const (
	maxExtent = 1 << 20
	maxCount  = 1 << 30
)

// describeType names the type of a value for messages.
func (r *row) describeType() string {
	switch r.typ {
	case tString:
		if len(r.choices) > 0 {
			return "one of " + strings.Join(r.choices, ", ")
		}
		return "text"
	case tInt:
		return "a whole number"
	case tFloat:
		return "a number"
	case tBool:
		return "true or false"
	case tInts:
		return "a list of whole numbers"
	case tExtent:
		return "a whole number or the name of an extent"
	case tExtents:
		return "a list of extents (whole numbers or names)"
	case tExpression:
		return "an equation"
	case tBlocks:
		return "a list of blocks"
	case tLosses:
		return "a list of loss terms"
	}
	return "a map"
}

func find(rows []row, name string) *row {
	for i := range rows {
		if rows[i].name == name {
			return &rows[i]
		}
	}
	return nil
}

func namesOf(rows []row) []string {
	list := make([]string, len(rows))
	for i := range rows {
		list[i] = rows[i].name
	}
	return list
}

// Choices gives the words of every setting that takes one of some words, by its
// path: "weights.order", "params.init", "blocks.pool.kind". Later stages test that
// each word does something.
func Choices() map[string][]string {
	all := map[string][]string{}
	var walk func(path string, rows []row)
	walk = func(path string, rows []row) {
		for _, r := range rows {
			if len(r.choices) > 0 {
				all[path+r.name] = r.choices
			}
			walk(path+r.name+".", r.rows)
		}
	}
	walk("", language)
	walk("params.", paramRows)
	for _, b := range Blocks {
		walk("blocks."+b.Name+".", b.args)
	}
	for _, l := range Learners {
		walk("learners."+l.Name+".", l.args)
	}
	return all
}

func mainOf(rows []row) *row {
	for i := range rows {
		if rows[i].main {
			return &rows[i]
		}
	}
	return nil
}
