// A row of a table of keys.

package schema

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// Row describes a key of a dialect. Reader, writer, JSON Schema and reference tables are derived
// from it.
type Row struct {
	Name     string
	Type     Type
	Default  string // as written in YAML; "" for none
	Required bool
	// Main marks the key that a single value sets, if it is written in place of a section or of
	// the arguments of a list entry, as in "word: value".
	Main bool
	// MayBeEmpty allows the empty text.
	MayBeEmpty bool
	In         Span
	Choices    []string
	Doc        string
	DefaultDoc string // what applies without the key, if that is no value
	Rows       []Row  // of a section, or of each map of a list
	// Field returns a pointer to the variable that the key sets; of is the value that the
	// enclosing section sets. For a list it appends an entry and returns it. Fields sets it. It is nil
	// for sections whose keys set fields of the enclosing value, and for arguments of list entries.
	Field  func(of any) any
	Custom *CustomType
	// Applies reports whether the key has a meaning for this document; nil means always. Keys that do not apply are not
	// written, see written.
	Applies func(of any) bool
	// Unwritten marks a key that is not part of a complete document.
	Unwritten bool
}

// Description returns the documentation with a sentence about the default that is no value.
func (r *Row) Description() string {
	if r.DefaultDoc == "" {
		return r.Doc
	}
	return r.Doc + " Default: " + r.DefaultDoc + "."
}

// CustomType is a type of values with its own reader and writer.
type CustomType struct {
	Noun   string // noun phrase for messages, such as "a list of blocks"
	Schema Object // JSON Schema of the value
	// Read decodes value into to, the result of Row.Field.
	Read func(r *Reader, path string, key, value *Node, to any)
	// Write encodes the value that from, the result of Row.Field, points to. It may be nil in dialects that
	// are not written.
	Write func(from any) *yaml.Node
}

// Fields completes the rows of a dialect: each key sets the field of its name in a T, as eval_every sets EvalEvery,
// and has the type of this field unless it names another one. The keys of a section set the fields of the struct of
// its name, or those of the enclosing struct if there is none. A section with a pointer is allocated when it is read,
// and a list appends to its slice.
func Fields[T any](rows []Row) []Row {
	bind(reflect.TypeFor[T](), nil, rows)
	return rows
}

// bind completes the rows of the struct at an index within root.
func bind(root reflect.Type, at []int, rows []Row) {
	of := root
	for _, i := range at {
		of = of.Field(i).Type
	}
	for i := range rows {
		row := &rows[i]
		name := strings.ReplaceAll(row.Name, "_", "")
		f, found := of.FieldByNameFunc(func(field string) bool { return strings.EqualFold(field, name) })
		index := slices.Concat(at, f.Index)
		variable := func(of any) reflect.Value { return reflect.ValueOf(of).Elem().FieldByIndex(index) }
		switch {
		case row.Field != nil:
		case !found && row.Rows != nil:
			row.Type = Section
			bind(root, at, row.Rows)
		case !found || !f.IsExported():
			panic(fmt.Sprintf("bug: %s has no exported field for the key %s", of, row.Name))
		case row.Rows == nil:
			row.Field = func(of any) any { return variable(of).Addr().Interface() }
			row.Type = cmp.Or(row.Type, typeOf(row, f.Type))
		case f.Type.Kind() == reflect.Struct:
			row.Type = Section
			bind(root, index, row.Rows)
		case f.Type.Kind() == reflect.Pointer:
			row.Type = Section
			row.Field = func(of any) any {
				v := variable(of)
				v.Set(reflect.New(f.Type.Elem()))
				return v.Interface()
			}
			bind(f.Type.Elem(), nil, row.Rows)
		default:
			row.Type = List
			row.Field = func(of any) any {
				v := variable(of)
				v.Set(reflect.Append(v, reflect.Zero(f.Type.Elem())))
				return v.Index(v.Len() - 1).Addr().Interface()
			}
			bind(f.Type.Elem(), nil, row.Rows)
		}
	}
}

// typeOf returns the type of a key that sets a variable of type t.
func typeOf(row *Row, t reflect.Type) Type {
	if row.Custom != nil {
		return Custom
	}
	switch reflect.Zero(t).Interface().(type) {
	case int, Int:
		return Whole
	case float64, *float64, Float:
		return Real
	case bool, Bool:
		return Truth
	case []int:
		return Wholes
	case Ints:
		return WholeList
	case Floats:
		return RealList
	case []Str, Strs:
		return Texts
	}
	return Text
}

// Inherit sets the keys that were not written in to, which rows set, to the values of from.
func Inherit(rows []Row, to, from any) {
	for i := range rows {
		if rows[i].PosOf(to).IsZero() {
			reflect.ValueOf(rows[i].Field(to)).Elem().Set(reflect.ValueOf(rows[i].Field(from)).Elem())
		}
	}
}

// When adapts a condition on a T to Row.Applies.
func When[T any](holds func(*T) bool) func(any) bool {
	return func(of any) bool { return holds(of.(*T)) }
}

// Span is a range of numbers. The zero Span does not limit.
type Span struct {
	lo, hi         float64
	loOpen, hiOpen bool
}

// AtLeast returns the range [lo, infinity).
func AtLeast(lo float64) Span { return Span{lo: lo, hi: math.Inf(1)} }

// Above returns the range (lo, infinity).
func Above(lo float64) Span { return Span{lo: lo, hi: math.Inf(1), loOpen: true} }

// Closed returns the closed range [lo, hi].
func Closed(lo, hi float64) Span { return Span{lo: lo, hi: hi} }

// Open returns the open range (lo, hi).
func Open(lo, hi float64) Span { return Span{lo: lo, hi: hi, loOpen: true, hiOpen: true} }

// HalfOpen returns the range [lo, hi).
func HalfOpen(lo, hi float64) Span { return Span{lo: lo, hi: hi, hiOpen: true} }

// PositiveUpTo returns the range (0, hi].
func PositiveUpTo(hi float64) Span { return Span{lo: 0, hi: hi, loOpen: true} }

func (s Span) limited() bool { return s != Span{} }

// Has reports whether a number is in the range.
func (s Span) Has(v float64) bool {
	if !s.limited() {
		return true
	}
	return (v > s.lo || v == s.lo && !s.loOpen) && (v < s.hi || v == s.hi && !s.hiOpen)
}

// String describes the range: "at least 1", "between 0 and 1 (1 excluded)".
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

// MaxSize is the maximum size of an axis. It detects typing errors before an allocation fails.
const MaxSize = 1 << 20

// named is a row of a table with a unique word.
type named interface{ Word() string }

// Word returns the key.
func (r Row) Word() string { return r.Name }

// Find returns the row of a table with the given word, or nil.
func Find[T named](table []T, word string) *T {
	if i := slices.IndexFunc(table, func(row T) bool { return row.Word() == word }); i >= 0 {
		return &table[i]
	}
	return nil
}

// Words lists the words of a table in order.
func Words[T named](table []T) []string {
	list := make([]string, len(table))
	for i, row := range table {
		list[i] = row.Word()
	}
	return list
}

// MainRow returns the row that Main marks, or nil.
func MainRow(rows []Row) *Row {
	for i := range rows {
		if rows[i].Main {
			return &rows[i]
		}
	}
	return nil
}

// written reports whether Encode writes the key: if it applies, and has a default or a value, or is
// a section with such keys.
func (r *Row) written(of any) bool {
	switch {
	case r.Unwritten || r.Applies != nil && !r.Applies(of):
		return false
	case r.Type == Section:
		return slices.ContainsFunc(r.Rows, func(row Row) bool { return row.written(of) })
	case r.Required || r.Default != "":
		return true
	}
	value := reflect.ValueOf(r.value(of))
	return !value.IsZero() && !(value.Kind() == reflect.Slice && value.Len() == 0)
}

// value returns the value of the key within of.
func (r *Row) value(of any) any {
	field := r.Field(of)
	if v, ok := field.(interface{ value() any }); ok {
		return v.value()
	}
	return reflect.ValueOf(field).Elem().Interface()
}

// target returns what the key of a section or a custom type sets: its own value, or fields of the enclosing one.
func (r *Row) target(of any) any {
	if r.Field == nil {
		return of
	}
	return r.Field(of)
}

// applyDefaults assigns the defaults of rows to their variables. Sections with a Field set their
// defaults when they are read.
func applyDefaults(rows []Row, to any) {
	for i := range rows {
		switch r := &rows[i]; {
		case r.Field == nil:
			applyDefaults(r.Rows, to)
		case r.Rows == nil && r.Custom == nil:
			assign(r.Field(to), r.defaultArg())
		}
	}
}

// ResetInapplicable assigns the default to all keys that do not apply, so that documents with the
// same meaning are equal.
func ResetInapplicable(rows []Row, of any) {
	for i := range rows {
		row := &rows[i]
		switch {
		case row.Applies == nil || row.Applies(of):
			ResetInapplicable(row.Rows, of)
		case row.Field != nil:
			assign(row.Field(of), row.defaultArg())
		default:
			applyDefaults(row.Rows, of)
		}
	}
}

// Choices adds the words of every row with a choice of words to into, by its dotted path under
// prefix.
func Choices(prefix string, rows []Row, into map[string][]string) {
	for _, r := range rows {
		if len(r.Choices) > 0 {
			into[prefix+r.Name] = r.Choices
		}
		Choices(prefix+r.Name+".", r.Rows, into)
	}
}
