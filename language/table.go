package language

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// Row is one key of a language: all that reader, writer, schema and reference
// know of it.
type Row struct {
	Name     string
	Type     Type
	Default  string // as written in YAML; "" for none
	Required bool
	// Main marks the key that a section, block or loss takes when it is given a
	// value alone, as in "word: value".
	Main    bool
	In      Span
	Choices []string
	Doc     string
	Rows    []Row // of a section or of each map of a list
	// To gives what the key sets, see Bind: a pointer to a value; of a section what
	// its rows set, nil for what holds the section; of a list the next of its
	// entries. It is nil for arguments of blocks and losses.
	To    func(of any) any
	Own   *Own
	holds func(*Spec) bool // whether the key says anything in this spec; nil: always
}

// Own is a form of values that one key alone has.
type Own struct {
	Says   string // "a list of blocks", for messages
	Schema any    // JSON Schema of the value, or a func() *object that makes it
	// Read decodes the value into what Row.To gives, in specs into the reader's.
	Read  func(r *Reader, path string, key, value *Node, to any)
	write func(*Spec) *yaml.Node // of specs, which are written back
}

// Bind makes the To of a row from what finds a value within a T.
func Bind[T any](find func(*T) any) func(any) any {
	return func(of any) any { return find(of.(*T)) }
}

// Span is a range of numbers; the zero span does not limit.
type Span struct {
	lo, hi         float64
	loOpen, hiOpen bool
}

// AtLeast is the range from lo on.
func AtLeast(lo float64) Span { return Span{lo: lo, hi: math.Inf(1)} }
func above(lo float64) Span   { return Span{lo: lo, hi: math.Inf(1), loOpen: true} }

// Between is the range from lo to hi, both of them in it.
func Between(lo, hi float64) Span { return Span{lo: lo, hi: hi} }

// Within is the range between lo and hi, neither of them in it.
func Within(lo, hi float64) Span { return Span{lo: lo, hi: hi, loOpen: true, hiOpen: true} }
func upTo(lo, hi float64) Span   { return Span{lo: lo, hi: hi, hiOpen: true} }

// ShareOf is the range above 0 up to hi.
func ShareOf(hi float64) Span { return Span{lo: 0, hi: hi, loOpen: true} }

func (s Span) limited() bool { return s != Span{} }

func (s Span) has(v float64) bool {
	if !s.limited() {
		return true
	}
	return (v > s.lo || v == s.lo && !s.loOpen) && (v < s.hi || v == s.hi && !s.hiOpen)
}

// String says the range in words: "at least 1", "between 0 and 1 (1 excluded)".
func (s Span) String() string {
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

// Choices gives the words of every setting that takes one of some words, by its
// path: "weights.order", "params.init", "blocks.pool.kind". Later stages test that
// each word does something.
func Choices() map[string][]string {
	all := map[string][]string{}
	var walk func(path string, rows []Row)
	walk = func(path string, rows []Row) {
		for _, r := range rows {
			if len(r.Choices) > 0 {
				all[path+r.Name] = r.Choices
			}
			walk(path+r.Name+".", r.Rows)
		}
	}
	walk("", language)
	walk("params.", paramRows)
	for _, b := range Blocks {
		walk("blocks."+b.Name+".", b.args)
	}
	for _, l := range learnerKinds {
		walk("learners."+l.Name+".", l.args)
	}
	return all
}

// called is a row of a table of words.
type called interface{ word() string }

func (r Row) word() string { return r.Name }

// find gives the row of a word, or nil.
func find[T called](table []T, word string) *T {
	if i := slices.IndexFunc(table, func(row T) bool { return row.word() == word }); i >= 0 {
		return &table[i]
	}
	return nil
}

// wordsOf lists the words of a table in their order.
func wordsOf[T called](table []T) []string {
	list := make([]string, len(table))
	for i, row := range table {
		list[i] = row.word()
	}
	return list
}

func mainOf(rows []Row) *Row {
	for i := range rows {
		if rows[i].Main {
			return &rows[i]
		}
	}
	return nil
}
