package language

import (
	"encoding/json"
	"reflect"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/miplc/miplc/internal/diag"
)

// Type says how a value is written and decoded.
type Type uint8

// The types of values. Those that are small belong to specs alone.
const (
	Text        Type = iota
	Whole            // whole number
	Real             // number
	Texts            // text, or a list of it
	Wholes           // whole number, or a list of them that do not repeat
	Section          // map with the keys of Row.Rows
	List             // list of such maps
	Form             // as Row.Own says
	truth            // true or false
	wholeList        // list of integers
	namedExtent      // integer or name of an extent
	extentList       // list of those
	expression       // equation, of a term of the loss
)

// valueType is what messages, reader and schema know of a type.
type valueType struct {
	says   string                                                           // for messages
	read   func(r *Reader, row *Row, path string, n *Node) (v any, ok bool) // nil: it is no single value
	schema func(*Row) *object
}

var types [expression + 1]valueType

func init() { // what reads a value words its errors by the table
	types = [...]valueType{
		Text:        {"text", reading((*Reader).text), textSchema},
		Whole:       {"a whole number", reading((*Reader).integer), wholeSchema},
		Real:        {"a number", reading((*Reader).number), realSchema},
		Texts:       {"text or a list of texts", reading((*Reader).severalTexts), func(r *Row) *object { return oneOrList(wordSchema(r)) }},
		Wholes:      {"a whole number or a list of whole numbers", reading((*Reader).severalIntegers), func(r *Row) *object { return oneOrList(wholeSchema(r)) }},
		Section:     {"a map", nil, mapSchema},
		List:        {"a list of maps", nil, mapsSchema},
		Form:        {"", nil, formSchema},
		truth:       {"true or false", reading((*Reader).truth), func(*Row) *object { return newObject("type", "boolean") }},
		wholeList:   {"a list of whole numbers", reading((*Reader).integers), func(r *Row) *object { return listOf(wholeSchema(r)) }},
		namedExtent: {"a whole number or the name of an extent", reading((*Reader).extent), func(*Row) *object { return extentSchema() }},
		extentList:  {"a list of extents (whole numbers or names)", nil, func(*Row) *object { return listOf(extentSchema()) }},
		expression:  {"an equation", nil, func(*Row) *object { return expressionSchema() }},
	}
}

func reading[T any](read func(*Reader, *Row, string, *Node) (T, bool)) func(*Reader, *Row, string, *Node) (any, bool) {
	return func(r *Reader, row *Row, path string, n *Node) (any, bool) { return read(r, row, path, n) }
}

// describeType names the type of a value for messages.
func (r *Row) describeType() string {
	switch {
	case r.Type == Form:
		return r.Own.Says
	case r.Type == Text && len(r.Choices) > 0:
		return "one of " + strings.Join(r.Choices, ", ")
	}
	return types[r.Type].says
}

// Arg is a decoded value, such as an argument of a block, a loss or a learner: V is
// what the reader of its type gives, nil where there is neither a value nor a default.
type Arg Value[any]

// Int is the value of an argument that is a whole number.
func (a Arg) Int() int { return as[int](a) }

// Float is the value of an argument that is a number.
func (a Arg) Float() float64 { return as[float64](a) }

// Str is the value of an argument that is text.
func (a Arg) Str() string { return as[string](a) }

func as[T any](a Arg) T {
	v, _ := a.V.(T)
	return v
}

// defaultArg is the default of a key as a decoded value without a place.
func (r *Row) defaultArg() Arg {
	if r.Default == "" || types[r.Type].read == nil {
		return Arg{}
	}
	n := &Node{text: r.Default, tag: "!!str"}
	if r.Type == truth {
		n.tag = "!!bool"
	}
	v, _ := types[r.Type].read(&Reader{}, r, r.Name, n)
	return Arg{V: v}
}

// schemaDefault is the default as the schema writes it, nil for none.
func (r *Row) schemaDefault() any {
	if r.Type == Real && r.Default != "" {
		return json.Number(r.Default) // as it is written
	}
	return r.defaultArg().V
}

// set takes a decoded value, the zero value for none.
func (v *Value[T]) set(a Arg) { *v = Value[T]{as[T](a), a.Pos} }

func (v Value[T]) value() any { return v.V }

// assign sets what the To of a row points to: a Value, or a variable of its own.
func assign(to any, a Arg) {
	if placed, ok := to.(interface{ set(Arg) }); ok {
		placed.set(a)
		return
	}
	variable := reflect.ValueOf(to).Elem()
	variable.SetZero()
	if a.V != nil {
		variable.Set(reflect.ValueOf(a.V))
	}
}

// posOf is the place of the Value that a row points to.
func posOf(to any) diag.Pos { return to.(interface{ place() diag.Pos }).place() }

// valueNode writes a decoded value.
func valueNode(v any) *yaml.Node {
	switch v := v.(type) {
	case int:
		return intNode(v)
	case float64:
		return floatNode(v)
	case bool:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: strconv.FormatBool(v)}
	case []int:
		return listOfNodes(yaml.FlowStyle, v, intNode)
	case string:
		return textNode(v)
	}
	return textNode("")
}
