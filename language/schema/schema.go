// Tables of keys as JSON Schema.

package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"strings"
)

// Object is a JSON object.
type Object = map[string]any

// Schema returns the JSON Schema (draft 2020-12) of a dialect, for completion and checks in editors. It does not
// contain rules across keys or the grammar of equations.
func (d *Dialect) Schema() []byte {
	root := PartialSchema(append([]Row{ExtendsRow}, d.Rows...))
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["title"] = "miplc " + d.Noun
	root["description"] = d.About
	if d.Defs != nil {
		root["$defs"] = d.Defs()
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	// The schema contains only strings, numbers, lists and objects, which can be encoded.
	if err := enc.Encode(root); err != nil {
		panic(fmt.Sprintf("bug: writing the schema: %v", err))
	}
	return out.Bytes()
}

// SectionSchema returns the schema of a map with the keys of rows.
func SectionSchema(rows []Row) Object {
	s := PartialSchema(rows)
	if names := required(rows); names != nil {
		s["required"] = names
	}
	return s
}

// PartialSchema returns the schema of a map that may lack required keys, because they may be inherited.
func PartialSchema(rows []Row) Object {
	keys := Object{}
	for i := range rows {
		keys[rows[i].Name] = rowSchema(&rows[i])
	}
	return Object{"type": "object", "properties": keys, "additionalProperties": false}
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
func MapSchema(value Object) Object {
	return Object{"type": "object", "propertyNames": Object{"pattern": identifierPattern}, "additionalProperties": value}
}

// ListOf returns the schema of a list.
func ListOf(item Object) Object { return Object{"type": "array", "items": item} }

// Ref returns a reference to a shared definition.
func Ref(name string) Object { return Object{"$ref": "#/$defs/" + name} }

// Schemas of a whole number or a name, and of an equation.
var (
	SizeSchema       = Object{"type": []string{"integer", "string"}, "minimum": 1, "pattern": identifierPattern}
	ExpressionSchema = Object{"type": []string{"string", "number"}}
)

// Schema returns the schema of the values of a row, without its documentation.
func (r *Row) Schema() Object { return types[r.Type].schema(r) }

// rowSchema returns the schema of the value of a key.
func rowSchema(r *Row) Object {
	s := maps.Clone(r.Schema())
	s["description"] = Plain(r.Description())
	if r.Type == Real && r.Default != "" {
		s["default"] = json.Number(r.Default) // as it is written
	} else if v := r.defaultArg().V; v != nil {
		s["default"] = v
	}
	return s
}

func textSchema(r *Row) Object {
	text := Object{"type": "string"}
	if len(r.Choices) > 0 {
		text["enum"] = r.Choices
	}
	if r.In.limited() {
		text["minLength"], text["maxLength"] = r.In.lo, r.In.hi
	}
	return text
}

func wholeSchema(r *Row) Object { return limited(Object{"type": "integer"}, r.In) }

func realSchema(r *Row) Object { return limited(Object{"type": "number"}, r.In) }

func oneOrList(one Object) Object { return Object{"anyOf": []Object{one, ListOf(one)}} }

// mapSchema also allows the value of the main key in place of the map.
func mapSchema(r *Row) Object {
	section := SectionSchema(r.Rows)
	if main := MainRow(r.Rows); main != nil {
		return Object{"anyOf": []Object{section, rowSchema(main)}}
	}
	return section
}

func mapsSchema(r *Row) Object {
	list := ListOf(SectionSchema(r.Rows))
	list["minItems"] = 1
	return list
}

func limited(s Object, in Span) Object {
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
	s[lo] = in.lo
	if !math.IsInf(in.hi, 1) {
		s[hi] = in.hi
	}
	return s
}

// EntrySchema returns the schema of a list entry: a plain word (unless an argument is
// required), word: value (for the main argument) or word: {arguments}. describe returns the word, documentation and
// arguments of a kind of entry.
func EntrySchema[T any](kinds []T, describe func(T) (word, doc string, args []Row)) Object {
	var words []string
	entries := Object{}
	for _, kind := range kinds {
		word, doc, args := describe(kind)
		if required(args) == nil {
			words = append(words, word)
		}
		forms := []Object{SectionSchema(args)}
		if main := MainRow(args); main != nil {
			forms = append(forms, rowSchema(main))
		}
		entries[word] = Object{"description": doc, "anyOf": forms}
	}
	whole := Object{"type": "object", "properties": entries, "additionalProperties": false, "minProperties": 1,
		"maxProperties": 1}
	return Object{"anyOf": []Object{{"type": "string", "enum": words}, whole}}
}

// Plain removes the backticks of a documentation text, which is Markdown, for messages and JSON Schemas.
func Plain(doc string) string { return strings.ReplaceAll(doc, "`", "") }
