// The types of values, and values with their positions.

package schema

import (
	"encoding/json"
	"reflect"
	"strings"

	"github.com/miplc/miplc/internal/diag"
)

// Value is a setting with the position where it was written. A default has the zero position.
type Value[T any] struct {
	V   T
	Pos diag.Pos
}

// Written reports whether the value was written rather than defaulted.
func (v Value[T]) Written() bool { return !v.Pos.IsZero() }

func (v Value[T]) pos() diag.Pos { return v.Pos }

func (v Value[T]) value() any { return v.V }

// MarshalJSON writes the value without its position.
func (v Value[T]) MarshalJSON() ([]byte, error) { return json.Marshal(v.V) }

// UnmarshalJSON reads what MarshalJSON wrote.
func (v *Value[T]) UnmarshalJSON(text []byte) error { return json.Unmarshal(text, &v.V) }

// Assign sets v to a decoded argument, or to the zero value if a has none.
func (v *Value[T]) Assign(a Arg) { *v = Value[T]{as[T](a), a.Pos} }

// The common kinds of Value.
type (
	Str    = Value[string]
	Int    = Value[int]
	Float  = Value[float64]
	Bool   = Value[bool]
	Ints   = Value[[]int]
	Floats = Value[[]float64]
	Strs   = Value[[]Str]
)

// Type is the type of the value of a key.
type Type uint8

// The types of values.
const (
	Text       Type = iota
	Whole           // whole number
	Real            // number
	Texts           // text, or a list of texts
	Wholes          // whole number, or a list of distinct whole numbers
	Section         // map with the keys of Row.Rows
	List            // list of such maps
	Custom          // as Row.Custom says
	Truth           // true or false
	WholeList       // list of whole numbers
	RealList        // list of numbers
	Size            // whole number, or the name of a size
	SizeList        // list of sizes
	Expression      // equation; the reader of its entry decodes it
)

// reading decodes a value of a type. ok is false after an error.
type reading[T any] func(r *Reader, row *Row, path string, n *Node) (v T, ok bool)

// valueType describes a type to messages, reader and schema.
type valueType struct {
	says   string       // for messages
	read   reading[any] // nil: Reader.key or the caller reads it
	schema func(*Row) Object
}

var types [Expression + 1]valueType

func init() { // the readers refer to the table for their messages
	types = [...]valueType{
		Text:  {"text", anyOf((*Reader).Text), textSchema},
		Whole: {"a whole number", anyOf((*Reader).whole), wholeSchema},
		Real:  {"a number", anyOf((*Reader).real), realSchema},
		Texts: {"text or a list of texts", anyOf(oneOrMore(Text, (*Reader).Text)), func(r *Row) Object {
			return oneOrList(textSchema(r))
		}},
		Wholes: {"a whole number or a list of whole numbers", anyOf((*Reader).oneOrMoreWholes), func(r *Row) Object {
			return oneOrList(wholeSchema(r))
		}},
		Section: {"a map", nil, mapSchema},
		List:    {"a list of maps", nil, mapsSchema},
		Custom:  {"", nil, func(r *Row) Object { return r.Custom.Schema }},
		Truth:   {"true or false", anyOf((*Reader).truth), func(*Row) Object { return Object{"type": "boolean"} }},
		WholeList: {"a list of whole numbers", anyOf(listOf(Whole, (*Reader).whole)), func(r *Row) Object {
			return ListOf(wholeSchema(r))
		}},
		RealList: {"a list of numbers", anyOf(listOf(Real, (*Reader).real)), func(r *Row) Object {
			return ListOf(realSchema(r))
		}},
		Size: {"a whole number or the name of a size", anyOf((*Reader).size), func(*Row) Object {
			return SizeSchema
		}},
		SizeList: {"a list of sizes (whole numbers or names)", anyOf(listOf(Size, (*Reader).sizeOfList)), func(*Row) Object {
			return ListOf(SizeSchema)
		}},
		Expression: {"an equation", nil, func(*Row) Object { return ExpressionSchema }},
	}
}

// sizeOfList decodes a size with its position. A wrong one has no text, and keeps its place in the list.
func (r *Reader) sizeOfList(row *Row, path string, n *Node) (Str, bool) {
	v, ok := r.size(row, path, n)
	if !ok {
		v = ""
	}
	return Str{V: v, Pos: n.pos}, true
}

func (r *Reader) truth(row *Row, path string, n *Node) (v, ok bool) {
	if n.kind != scalarNode || n.tag != "!!bool" || n.text != "true" && n.text != "false" {
		r.wrongType(row, path, n)
		return false, false
	}
	return n.text == "true", true
}

// oneOrMoreWholes decodes one number or a list of numbers that do not repeat.
func (r *Reader) oneOrMoreWholes(row *Row, path string, n *Node) (list []int, ok bool) {
	values, ok := oneOrMore(Whole, (*Reader).whole)(r, row, path, n)
	for _, v := range values {
		list = append(list, v.V)
	}
	return list, ok
}

// anyOf is a reading of values of any type.
func anyOf[T any](read reading[T]) reading[any] {
	return func(r *Reader, row *Row, path string, n *Node) (any, bool) { return read(r, row, path, n) }
}

// DescribeType names the type of a value for messages.
func (r *Row) DescribeType() string {
	switch {
	case r.Type == Custom:
		return r.Custom.Noun
	case r.Type == Text && len(r.Choices) > 0:
		return "one of " + strings.Join(r.Choices, ", ")
	}
	return types[r.Type].says
}

// Arg is a decoded value, such as an argument of a list entry. V has the type that
// belongs to the type of its row, or is nil if there is neither a value nor a default.
type Arg Value[any]

// Int returns the value of a whole number.
func (a Arg) Int() int { return as[int](a) }

// Float returns the value of a number.
func (a Arg) Float() float64 { return as[float64](a) }

// Str returns the value of a text.
func (a Arg) Str() string { return as[string](a) }

func as[T any](a Arg) T {
	v, _ := a.V.(T)
	return v
}

// defaultArg returns the default of a key as a decoded value without a position.
func (r *Row) defaultArg() Arg {
	if r.Default == "" || types[r.Type].read == nil {
		return Arg{}
	}
	n := &Node{text: r.Default, tag: "!!str"}
	if r.Type == Truth {
		n.tag = "!!bool"
	}
	v, _ := types[r.Type].read(&Reader{}, r, r.Name, n)
	return Arg{V: v}
}

// assign sets the variable that Row.Field returned: a Value or an ordinary one.
func assign(to any, a Arg) {
	if v, ok := to.(interface{ Assign(Arg) }); ok {
		v.Assign(a)
		return
	}
	variable := reflect.ValueOf(to).Elem()
	variable.SetZero()
	if a.V == nil {
		return
	}
	if variable.Kind() == reflect.Pointer {
		variable.Set(reflect.New(variable.Type().Elem()))
		variable = variable.Elem()
	}
	variable.Set(reflect.ValueOf(a.V))
}

// PosOf returns the position of the Value that a row sets within of.
func (r *Row) PosOf(of any) diag.Pos { return r.Field(of).(interface{ pos() diag.Pos }).pos() }
