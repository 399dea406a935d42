package language

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
)

// Schema is the JSON Schema (draft 2020-12) of the language of specs.
func Schema() []byte { return specDialect.Schema() }

// Schema is the JSON Schema (draft 2020-12) of a dialect, made from the tables
// that the reader uses. Editors offer completion and checks with it. Rules across
// keys and the grammar of equations are the reader's alone.
func (d *Dialect) Schema() []byte {
	root := sectionSchema(d.Rows)
	root.set("properties", withFirst(root.get("properties").(*object), "extends", rowSchema(&extendsRow)))
	root.remove("required") // may be inherited
	schema := newObject(
		"$schema", "https://json-schema.org/draft/2020-12/schema",
		"title", "miplc "+d.Noun,
		"description", d.About,
	)
	for _, m := range root.members {
		schema.set(m.key, m.value)
	}
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
	param := sectionSchema(paramRows)
	param.remove("required") // shape may be inherited
	defs.set("param", param)
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

func (o *object) set(key string, value any) {
	for i := range o.members {
		if o.members[i].key == key {
			o.members[i].value = value
			return
		}
	}
	o.members = append(o.members, member{key, value})
}

func (o *object) get(key string) any {
	for _, m := range o.members {
		if m.key == key {
			return m.value
		}
	}
	return nil
}

func (o *object) remove(key string) {
	kept := o.members[:0]
	for _, m := range o.members {
		if m.key != key {
			kept = append(kept, m)
		}
	}
	o.members = kept
}

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

func withFirst(o *object, key string, value any) *object {
	return &object{members: append([]member{{key, value}}, o.members...)}
}

func sectionSchema(rows []Row) *object {
	props := newObject()
	var required []string
	for i := range rows {
		props.set(rows[i].Name, rowSchema(&rows[i]))
		if rows[i].Required {
			required = append(required, rows[i].Name)
		}
	}
	s := newObject("type", "object", "properties", props, "additionalProperties", false)
	if required != nil {
		s.set("required", required)
	}
	return s
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
	s := typeSchema(r)
	s.set("description", r.Doc)
	if r.Type == Text {
		words(s, r)
	}
	if v := schemaDefault(r); v != nil {
		s.set("default", v)
	}
	return s
}

// words limits a text to those that a row knows.
func words(s *object, r *Row) *object {
	if len(r.Choices) > 0 {
		s.set("enum", r.Choices)
	}
	return s
}

func typeSchema(r *Row) *object {
	switch r.Type {
	case Whole:
		return limited(newObject("type", "integer"), r.In)
	case Real:
		return limited(newObject("type", "number"), r.In)
	case truth:
		return newObject("type", "boolean")
	case wholeList:
		return listOf(limited(newObject("type", "integer"), r.In))
	case namedExtent:
		return extentSchema()
	case extentList:
		return listOf(extentSchema())
	case expression:
		return expressionSchema()
	case Section:
		section := sectionSchema(r.Rows)
		if main := mainOf(r.Rows); main != nil {
			return newObject("anyOf", []*object{section, rowSchema(main)})
		}
		return section
	case List:
		list := listOf(sectionSchema(r.Rows))
		list.set("minItems", 1)
		return list
	case Texts:
		text := words(newObject("type", "string"), r)
		return newObject("anyOf", []*object{text, listOf(text)})
	case Wholes:
		one := limited(newObject("type", "integer"), r.In)
		return newObject("anyOf", []*object{one, listOf(one)})
	case Form:
		if made, ok := r.Own.Schema.(func() *object); ok {
			return made()
		}
		return newObject("anyOf", []any{r.Own.Schema})
	}
	text := newObject("type", "string")
	if r.In.limited() {
		text.set("minLength", r.In.lo)
		text.set("maxLength", r.In.hi)
	}
	return text
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

func schemaDefault(r *Row) any {
	if r.Default == "" {
		return nil
	}
	switch r.Type {
	case Whole:
		v, _ := strconv.Atoi(r.Default)
		return v
	case Real:
		return json.Number(r.Default)
	case truth:
		return r.Default == "true"
	case Text:
		return r.Default
	}
	return nil
}

// entrySchema allows plain words (unless an argument is required), word: value
// (for the main argument) and word: {arguments}.
func entrySchema(entries []Kind) *object {
	var words []string
	props := newObject()
	for _, e := range entries {
		args := sectionSchema(e.args)
		if args.get("required") == nil {
			words = append(words, e.Name)
		}
		forms := []*object{args}
		if main := mainOf(e.args); main != nil {
			forms = append(forms, rowSchema(main))
		}
		props.set(e.Name, newObject("description", e.Doc, "anyOf", forms))
	}
	whole := newObject("type", "object", "properties", props, "additionalProperties", false, "minProperties", 1, "maxProperties", 1)
	return newObject("anyOf", []*object{newObject("type", "string", "enum", words), whole})
}
