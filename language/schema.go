package language

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
)

// Schema is the JSON Schema (draft 2020-12) of the language, made from the
// tables that the reader uses. Editors offer completion and checks with it.
// Rules across keys and the grammar of equations are the reader's alone.
func Schema() []byte {
	root := sectionSchema(language)
	root.set("properties", withFirst(root.get("properties").(*object), "extends", rowSchema(&extendsRow)))
	root.remove("required") // name may be inherited
	schema := newObject(
		"$schema", "https://json-schema.org/draft/2020-12/schema",
		"title", "miplc spec",
		"description", "A model for multi-instance partial-label learning: data, network, loss, training and export.",
	)
	for _, m := range root.members {
		schema.set(m.key, m.value)
	}
	defs := newObject()
	defs.set("block", entrySchema(blockEntries()))
	defs.set("loss", entrySchema(lossEntries()))
	param := sectionSchema(paramRows)
	param.remove("required") // shape may be inherited
	defs.set("param", param)
	schema.set("$defs", defs)

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

func sectionSchema(rows []row) *object {
	props := newObject()
	var required []string
	for i := range rows {
		props.set(rows[i].name, rowSchema(&rows[i]))
		if rows[i].required {
			required = append(required, rows[i].name)
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
func rowSchema(r *row) *object {
	s := typeSchema(r)
	s.set("description", r.doc)
	if len(r.choices) > 0 {
		s.set("enum", r.choices)
	}
	if v := schemaDefault(r); v != nil {
		s.set("default", v)
	}
	return s
}

func typeSchema(r *row) *object {
	switch r.typ {
	case tInt:
		return limited(newObject("type", "integer"), r.in)
	case tFloat:
		return limited(newObject("type", "number"), r.in)
	case tBool:
		return newObject("type", "boolean")
	case tInts:
		return listOf(limited(newObject("type", "integer"), r.in))
	case tExtent:
		return extentSchema()
	case tExtents:
		return listOf(extentSchema())
	case tExpression:
		return expressionSchema()
	case tSection:
		return sectionSchema(r.rows)
	case tBlocks:
		return listOf(ref("block"))
	case tSizes:
		return mapOf(limited(newObject("type", "integer"), between(1, maxExtent)))
	case tNumbers:
		return mapOf(newObject("type", "number"))
	case tParams:
		return mapOf(newObject("oneOf", []*object{ref("param"), listOf(extentSchema())}))
	case tLet:
		return mapOf(expressionSchema())
	case tLearner:
		return learnerSchema()
	case tLosses:
		list := listOf(ref("loss"))
		list.set("minItems", 1)
		return list
	}
	return newObject("type", "string")
}

func limited(s *object, in span) *object {
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

func schemaDefault(r *row) any {
	if r.def == "" {
		return nil
	}
	switch r.typ {
	case tInt:
		v, _ := strconv.Atoi(r.def)
		return v
	case tFloat:
		return json.Number(r.def)
	case tBool:
		return r.def == "true"
	case tString:
		return r.def
	}
	return nil
}

// schemaEntry is one word of a list of blocks or loss terms.
type schemaEntry struct {
	word, doc string
	args      []row
}

func blockEntries() []schemaEntry {
	var list []schemaEntry
	for i := range Blocks {
		list = append(list, schemaEntry{Blocks[i].Name, Blocks[i].Doc, Blocks[i].args})
	}
	return list
}

func lossEntries() []schemaEntry {
	var list []schemaEntry
	for _, k := range lossKinds {
		list = append(list, schemaEntry{k.name, k.doc, k.args})
	}
	return list
}

// entrySchema allows plain words (unless an argument is required), word: value
// (for the main argument) and word: {arguments}.
func entrySchema(entries []schemaEntry) *object {
	var words []string
	props := newObject()
	for _, e := range entries {
		args := sectionSchema(e.args)
		if args.get("required") == nil {
			words = append(words, e.word)
		}
		forms := []*object{args}
		if main := mainOf(e.args); main != nil {
			forms = append(forms, rowSchema(main))
		}
		props.set(e.word, newObject("description", e.doc, "anyOf", forms))
	}
	whole := newObject("type", "object", "properties", props, "additionalProperties", false, "minProperties", 1, "maxProperties", 1)
	return newObject("anyOf", []*object{newObject("type", "string", "enum", words), whole})
}
