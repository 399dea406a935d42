package language

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// YAML writes the complete spec: every key that says something, defaults
// filled in, nothing inherited. Parse reads it back to an equal spec.
func (s *Spec) YAML() []byte {
	w := writer{spec: s}
	var out bytes.Buffer
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	// Encoding a tree of plain nodes into memory cannot fail.
	if err := enc.Encode(w.section(language)); err != nil {
		panic(fmt.Sprintf("bug: writing a spec as YAML: %v", err))
	}
	enc.Close()
	return out.Bytes()
}

// yaml writes a tree as it is.
func (n *node) yaml() []byte {
	var out bytes.Buffer
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	// Encoding a tree of plain nodes into memory cannot fail.
	if err := enc.Encode(n.plain()); err != nil {
		panic(fmt.Sprintf("bug: writing YAML: %v", err))
	}
	enc.Close()
	return out.Bytes()
}

func (n *node) plain() *yaml.Node {
	switch n.kind {
	case listNode:
		list := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
		for _, item := range n.items {
			list.Content = append(list.Content, item.plain())
		}
		return list
	case mapNode:
		m := mapping(0)
		for i, key := range n.keys {
			m.Content = append(m.Content, key.plain(), n.items[i].plain())
		}
		return m
	}
	if n.tag == "!!str" {
		return textNode(n.text)
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: n.tag, Value: n.text}
}

// Hash is the SHA-256 of the complete spec as YAML writes it, in hexadecimal.
func (s *Spec) Hash() string {
	sum := sha256.Sum256(s.YAML())
	return hex.EncodeToString(sum[:])
}

type writer struct{ spec *Spec }

func mapping(style yaml.Style) *yaml.Node {
	return &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Style: style}
}

func put(m *yaml.Node, key string, value *yaml.Node) {
	m.Content = append(m.Content, textNode(key), value)
}

func textNode(text string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text}
	if strings.ContainsFunc(text, isControl) {
		n.Style = yaml.DoubleQuotedStyle
		if plainLines(text) {
			n.Style = yaml.LiteralStyle
		}
	}
	return n
}

// plainLines reports whether text can stand as a literal block as it is: no
// control characters but line feeds, no white space that a block could lose.
func plainLines(text string) bool {
	for i, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		if strings.ContainsFunc(line, isControl) || strings.TrimRight(line, " ") != line || line == "" || i == 0 && line[0] == ' ' {
			return false
		}
	}
	return true
}

func intNode(v int) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: strconv.Itoa(v)}
}

func floatNode(v float64) *yaml.Node {
	text := strconv.FormatFloat(v, 'g', -1, 64)
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!float", Value: text}
	if integerText.MatchString(text) {
		n.Tag = "!!int"
	}
	return n
}

func flow(items []*yaml.Node) *yaml.Node {
	return &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Style: yaml.FlowStyle, Content: items}
}

func valueNode(v any) *yaml.Node {
	switch v := v.(type) {
	case *Str:
		return textNode(v.V)
	case *Int:
		return intNode(v.V)
	case *Float:
		return floatNode(v.V)
	case *Bool:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: strconv.FormatBool(v.V)}
	case *Ints:
		var items []*yaml.Node
		for _, e := range v.V {
			items = append(items, intNode(e))
		}
		return flow(items)
	}
	return textNode("")
}

func (w *writer) section(rows []Row) *yaml.Node {
	m := mapping(0)
	for i := range rows {
		r := &rows[i]
		if r.holds != nil && !r.holds(w.spec) {
			continue
		}
		put(m, r.Name, w.value(r))
	}
	return m
}

func (w *writer) value(r *Row) *yaml.Node {
	switch r.Type {
	case Section:
		return w.section(r.Rows)
	case blockList:
		return w.blocks()
	case sizeMap:
		m := mapping(yaml.FlowStyle)
		for _, s := range w.spec.Model.Sizes {
			put(m, s.Name.V, intNode(s.V.V))
		}
		return m
	case numberMap:
		m := mapping(yaml.FlowStyle)
		for _, s := range w.spec.Model.Numbers {
			put(m, s.Name.V, floatNode(s.V.V))
		}
		return m
	case paramMap:
		m := mapping(0)
		for i := range w.spec.Model.Params {
			put(m, w.spec.Model.Params[i].Name.V, param(&w.spec.Model.Params[i]))
		}
		return m
	case letMap:
		m := mapping(0)
		for _, eq := range w.spec.Model.Let {
			put(m, eq.Name.V, textNode(eq.Text.V))
		}
		return m
	case lossList:
		return w.losses()
	case learnerForm:
		return w.learner()
	case expression:
		return textNode(w.spec.Weights.Update.Text.V)
	}
	return valueNode(r.To(w.spec))
}

func argNode(r *Row, a Arg) *yaml.Node {
	switch r.Type {
	case Whole:
		return intNode(a.Int)
	case Real:
		return floatNode(a.Float)
	}
	return textNode(a.Str)
}

// entryNode writes a block or loss term: a word, word: value where it has the
// main argument alone, or word: {arguments}.
func entryNode(word string, rows []Row, args map[string]Arg) *yaml.Node {
	if len(rows) == 0 {
		return textNode(word)
	}
	m := mapping(0)
	if len(rows) == 1 && rows[0].Main {
		put(m, word, argNode(&rows[0], args[rows[0].Name]))
		return m
	}
	inner := mapping(yaml.FlowStyle)
	for i := range rows {
		put(inner, rows[i].Name, argNode(&rows[i], args[rows[i].Name]))
	}
	put(m, word, inner)
	return m
}

func (w *writer) blocks() *yaml.Node {
	list := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
	for i := range w.spec.Model.Blocks {
		b := &w.spec.Model.Blocks[i]
		list.Content = append(list.Content, entryNode(b.Kind.V, blockNamed(b.Kind.V).args, b.Args))
	}
	return list
}

func (w *writer) losses() *yaml.Node {
	list := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
	for i := range w.spec.Loss {
		l := &w.spec.Loss[i]
		n := entryNode(l.Kind.V, lossNamed(l.Kind.V).args, map[string]Arg{
			"weight": {Float: l.Weight.V}, "name": {Str: l.Name.V}, "value": {Str: l.Equation.Text.V},
		})
		if l.Kind.V == "equation" { // block style: the value may have several lines
			n.Content[1].Style = 0
		}
		list.Content = append(list.Content, n)
	}
	return list
}

func param(p *Param) *yaml.Node {
	m := mapping(yaml.FlowStyle)
	var shape []*yaml.Node
	for _, e := range p.Shape {
		shape = append(shape, extentNode(e.V))
	}
	put(m, "shape", flow(shape))
	put(m, "init", textNode(p.Init.V))
	if p.Scale.V != 0 {
		put(m, "scale", floatNode(p.Scale.V))
	}
	if p.FanIn.V != "" {
		put(m, "fan_in", extentNode(p.FanIn.V))
	}
	return m
}

func extentNode(e string) *yaml.Node {
	if n, err := strconv.Atoi(e); err == nil {
		return intNode(n)
	}
	return textNode(e)
}
