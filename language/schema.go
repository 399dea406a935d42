package language

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
)

// Schema is the JSON Schema (draft 2020-12) of the language of specs.
func Schema() []byte { return specDialect.Schema() }

// Schema is the JSON Schema (draft 2020-12) of a dialect, made from the tables
// that the reader uses. Editors offer completion and checks with it. Rules across
// keys and the grammar of equations are the reader's alone.
func (d *Dialect) Schema() []byte {
	root := openSchema(d.Rows, member{extendsRow.Name, rowSchema(&extendsRow)})
	schema := newObject(
		"$schema", "https://json-schema.org/draft/2020-12/schema",
		"title", "miplc "+d.Noun,
		"description", d.About,
	)
	schema.members = append(schema.members, root.members...)
	if d == specDialect {
		schema.set("$defs", specDefs())
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	// The schema holds strings, numbers, lists and objects alone.
	if err := enc.Encode(schema); err != nil {
		panic(fmt.Sprintf("bug: writing the schema: %v", err))
	}
	return out.Bytes()
}

// specDefs are the parts that the schema of specs names.
func specDefs() *object {
	defs := newObject()
	defs.set("block", entrySchema(Blocks))
	defs.set("loss", entrySchema(lossKinds))
	defs.set("param", openSchema(paramRows))
	return defs
}

// object is a JSON object that keeps the order of its members.
type object struct{ members []member }

type member struct {
	key   string
	value any
}

func newObject(pairs ...any) *object {
	o := &object{}
	for i := 0; i+1 < len(pairs); i += 2 {
		o.set(pairs[i].(string), pairs[i+1])
	}
	return o
}

func (o *object) set(key string, value any) { o.members = append(o.members, member{key, value}) }

// MarshalJSON writes the members in order.
func (o *object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	b.WriteByte('{')
	for i, m := range o.members {
		if i > 0 {
			b.WriteByte(',')
		}
		if err := enc.Encode(m.key); err != nil {
			return nil, err
		}
		b.WriteByte(':')
		if err := enc.Encode(m.value); err != nil {
			return nil, err
		}
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// sectionSchema is the schema of a map with the keys of rows after the first ones.
func sectionSchema(rows []Row, first ...member) *object {
	s := openSchema(rows, first...)
	if names := required(rows); names != nil {
		s.set("required", names)
	}
	return s
}

// openSchema is sectionSchema for keys that may all be inherited.
func openSchema(rows []Row, first ...member) *object {
	props := &object{first}
	for i := range rows {
		props.set(rows[i].Name, rowSchema(&rows[i]))
	}
	return newObject("type", "object", "properties", props, "additionalProperties", false)
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

func mapOf(value *object) *object {
	return newObject("type", "object", "propertyNames", newObject("pattern", identifierPattern), "additionalProperties", value)
}

func listOf(item *object) *object { return newObject("type", "array", "items", item) }

func ref(name string) *object { return newObject("$ref", "#/$defs/"+name) }

func extentSchema() *object {
	return newObject("type", []string{"integer", "string"}, "minimum", 1, "pattern", identifierPattern)
}

func expressionSchema() *object { return newObject("type", []string{"string", "number"}) }

// rowSchema is the schema of the value of one key.
func rowSchema(r *Row) *object {
	s := types[r.Type].schema(r)
	s.set("description", r.Doc)
	if r.Type == Text && len(r.Choices) > 0 {
		s.set("enum", r.Choices)
	}
	if v := r.schemaDefault(); v != nil {
		s.set("default", v)
	}
	return s
}

func textSchema(r *Row) *object {
	text := newObject("type", "string")
	if r.In.limited() {
		text.set("minLength", r.In.lo)
		text.set("maxLength", r.In.hi)
	}
	return text
}

// wordSchema is that of one of several texts.
func wordSchema(r *Row) *object {
	text := newObject("type", "string")
	if len(r.Choices) > 0 {
		text.set("enum", r.Choices)
	}
	return text
}

func wholeSchema(r *Row) *object { return limited(newObject("type", "integer"), r.In) }

func realSchema(r *Row) *object { return limited(newObject("type", "number"), r.In) }

func oneOrList(one *object) *object { return newObject("anyOf", []*object{one, listOf(one)}) }

// mapSchema allows the value of the main key alone too.
func mapSchema(r *Row) *object {
	section := sectionSchema(r.Rows)
	if main := mainOf(r.Rows); main != nil {
		return newObject("anyOf", []*object{section, rowSchema(main)})
	}
	return section
}

func mapsSchema(r *Row) *object {
	list := listOf(sectionSchema(r.Rows))
	list.set("minItems", 1)
	return list
}

func formSchema(r *Row) *object {
	if made, ok := r.Own.Schema.(func() *object); ok {
		return made()
	}
	return newObject("anyOf", []any{r.Own.Schema})
}

func limited(s *object, in Span) *object {
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
	s.set(lo, in.lo)
	if !math.IsInf(in.hi, 1) {
		s.set(hi, in.hi)
	}
	return s
}

// entrySchema allows plain words (unless an argument is required), word: value
// (for the main argument) and word: {arguments}.
func entrySchema(entries []Kind) *object {
	var words []string
	props := newObject()
	for _, e := range entries {
		if required(e.args) == nil {
			words = append(words, e.Name)
		}
		forms := []*object{sectionSchema(e.args)}
		if main := mainOf(e.args); main != nil {
			forms = append(forms, rowSchema(main))
		}
		props.set(e.Name, newObject("description", e.Doc, "anyOf", forms))
	}
	whole := newObject("type", "object", "properties", props, "additionalProperties", false, "minProperties", 1, "maxProperties", 1)
	return newObject("anyOf", []*object{newObject("type", "string", "enum", words), whole})
}
