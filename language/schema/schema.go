// Tables of keys as JSON Schema.

package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
)

// Schema returns the JSON Schema (draft 2020-12) of a dialect, for completion and
// checks in editors. It does not contain rules across keys or the grammar of
// equations.
func (d *Dialect) Schema() []byte {
	root := PartialSchema(d.Rows, Member{ExtendsRow.Name, rowSchema(&ExtendsRow)})
	schema := NewObject(
		"$schema", "https://json-schema.org/draft/2020-12/schema",
		"title", "miplc "+d.Noun,
		"description", d.About,
	)
	schema.members = append(schema.members, root.members...)
	if d.Defs != nil {
		schema.Set("$defs", d.Defs())
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	// The schema contains only strings, numbers, lists and objects, which can be encoded.
	if err := enc.Encode(schema); err != nil {
		panic(fmt.Sprintf("bug: writing the schema: %v", err))
	}
	return out.Bytes()
}

// Object is a JSON object that keeps the order of its members.
type Object struct{ members []Member }

// Member is one member of an Object.
type Member struct {
	Key   string
	Value any
}

// NewObject returns an object with alternating keys and values.
func NewObject(pairs ...any) *Object {
	o := &Object{}
	for i := 0; i+1 < len(pairs); i += 2 {
		o.Set(pairs[i].(string), pairs[i+1])
	}
	return o
}

// Set appends a member.
func (o *Object) Set(key string, value any) { o.members = append(o.members, Member{key, value}) }

// MarshalJSON writes the members in order.
func (o *Object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	b.WriteByte('{')
	for i, m := range o.members {
		if i > 0 {
			b.WriteByte(',')
		}
		if err := enc.Encode(m.Key); err != nil {
			return nil, err
		}
		b.WriteByte(':')
		if err := enc.Encode(m.Value); err != nil {
			return nil, err
		}
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// SectionSchema returns the schema of a map with the members first and the keys of
// rows.
func SectionSchema(rows []Row, first ...Member) *Object {
	s := PartialSchema(rows, first...)
	if names := required(rows); names != nil {
		s.Set("required", names)
	}
	return s
}

// PartialSchema returns the schema of a map that may lack required keys, because they may be inherited.
func PartialSchema(rows []Row, first ...Member) *Object {
	props := &Object{first}
	for i := range rows {
		props.Set(rows[i].Name, rowSchema(&rows[i]))
	}
	return NewObject("type", "object", "properties", props, "additionalProperties", false)
}

func required(rows []Row) (names []string) {
	for _, r := range rows {
		if r.Required {
			names = append(names, r.Name)
		}
	}
	return names
}

const identifierPattern = "^[A-Za-z][A-Za-z0-9_]*$"

// MapSchema returns the schema of a map from identifiers to values.
func MapSchema(value *Object) *Object {
	return NewObject("type", "object", "propertyNames", NewObject("pattern", identifierPattern), "additionalProperties",
		value)
}

// ListOf returns the schema of a list.
func ListOf(item *Object) *Object { return NewObject("type", "array", "items", item) }

// Ref returns a reference to a shared definition.
func Ref(name string) *Object { return NewObject("$ref", "#/$defs/"+name) }

// SizeSchema returns the schema of a whole number or a name.
func SizeSchema() *Object {
	return NewObject("type", []string{"integer", "string"}, "minimum", 1, "pattern", identifierPattern)
}

// ExpressionSchema returns the schema of an equation.
func ExpressionSchema() *Object { return NewObject("type", []string{"string", "number"}) }

// Schema returns the schema of the values of a row, without its documentation.
func (r *Row) Schema() *Object { return types[r.Type].schema(r) }

// rowSchema returns the schema of the value of a key.
func rowSchema(r *Row) *Object {
	s := r.Schema()
	s.Set("description", Plain(r.Doc))
	if r.Type == Text && len(r.Choices) > 0 {
		s.Set("enum", r.Choices)
	}
	if v := r.schemaDefault(); v != nil {
		s.Set("default", v)
	}
	return s
}

func textSchema(r *Row) *Object {
	text := NewObject("type", "string")
	if r.In.limited() {
		text.Set("minLength", r.In.lo)
		text.Set("maxLength", r.In.hi)
	}
	return text
}

// wordSchema returns the schema of a choice of words.
func wordSchema(r *Row) *Object {
	text := NewObject("type", "string")
	if len(r.Choices) > 0 {
		text.Set("enum", r.Choices)
	}
	return text
}

func wholeSchema(r *Row) *Object { return limited(NewObject("type", "integer"), r.In) }

func realSchema(r *Row) *Object { return limited(NewObject("type", "number"), r.In) }

func oneOrList(one *Object) *Object { return NewObject("anyOf", []*Object{one, ListOf(one)}) }

// mapSchema also allows the value of the main key in place of the map.
func mapSchema(r *Row) *Object {
	section := SectionSchema(r.Rows)
	if main := MainRow(r.Rows); main != nil {
		return NewObject("anyOf", []*Object{section, rowSchema(main)})
	}
	return section
}

func mapsSchema(r *Row) *Object {
	list := ListOf(SectionSchema(r.Rows))
	list.Set("minItems", 1)
	return list
}

func customSchema(r *Row) *Object {
	if made, ok := r.Custom.Schema.(func() *Object); ok {
		return made()
	}
	return NewObject("anyOf", []any{r.Custom.Schema})
}

func limited(s *Object, in Span) *Object {
	if !in.limited() {
		return s
	}
	lo, hi := "minimum", "maximum"
	if in.loOpen {
		lo = "exclusiveMinimum"
	}
	if in.hiOpen {
		hi = "exclusiveMaximum"
	}
	s.Set(lo, in.lo)
	if !math.IsInf(in.hi, 1) {
		s.Set(hi, in.hi)
	}
	return s
}

// EntrySchema returns the schema of a list entry: a plain word (unless an argument is
// required), word: value (for the main argument) or word: {arguments}. describe
// returns the word, documentation and arguments of a kind of entry.
func EntrySchema[T any](kinds []T, describe func(T) (word, doc string, args []Row)) *Object {
	var words []string
	props := NewObject()
	for _, kind := range kinds {
		word, doc, args := describe(kind)
		if required(args) == nil {
			words = append(words, word)
		}
		forms := []*Object{SectionSchema(args)}
		if main := MainRow(args); main != nil {
			forms = append(forms, rowSchema(main))
		}
		props.Set(word, NewObject("description", doc, "anyOf", forms))
	}
	whole := NewObject("type", "object", "properties", props, "additionalProperties", false, "minProperties", 1,
		"maxProperties", 1)
	return NewObject("anyOf", []*Object{NewObject("type", "string", "enum", words), whole})
}
