// Writing of values as YAML.

package schema

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// Encode writes a document as YAML: every key of rows that applies, with its value within of.
func Encode(rows []Row, of any) []byte { return encodeTree(SectionNode(0, rows, of)) }

// encodeTree writes a tree of plain nodes.
func encodeTree(tree *yaml.Node) []byte {
	var out bytes.Buffer
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	// Encoding a tree of plain nodes into memory cannot fail.
	if err := enc.Encode(tree); err != nil {
		panic(fmt.Sprintf("bug: writing YAML: %v", err))
	}
	enc.Close()
	return out.Bytes()
}

// SectionNode encodes a section: every key of rows that applies, with its value within of.
func SectionNode(style yaml.Style, rows []Row, of any) *yaml.Node {
	m := MapNode(style)
	for i := range rows {
		switch r := &rows[i]; {
		case !r.written(of):
		case r.Type == Section:
			Put(m, r.Name, SectionNode(0, r.Rows, of))
		case r.Type == Custom:
			Put(m, r.Name, r.Custom.Write(r.Field(of)))
		case r.Type == Size:
			Put(m, r.Name, sizeNode(r.value(of).(string)))
		case r.Type == SizeList:
			Put(m, r.Name, ListNode(yaml.FlowStyle, r.value(of).([]Str), func(s Str) *yaml.Node { return sizeNode(s.V) }))
		default:
			Put(m, r.Name, ValueNode(r.value(of)))
		}
	}
	return m
}

// yaml returns n as a node of the YAML library.
func (n *Node) yaml() *yaml.Node {
	switch n.kind {
	case listNode:
		return ListNode(0, n.items, (*Node).yaml)
	case mapNode:
		m := MapNode(0)
		for i, key := range n.keys {
			m.Content = append(m.Content, key.yaml(), n.items[i].yaml())
		}
		return m
	}
	if n.tag == "!!str" {
		return TextNode(n.text)
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: n.tag, Value: n.text}
}

// MapNode returns an empty map.
func MapNode(style yaml.Style) *yaml.Node {
	return &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Style: style}
}

// Put appends a key and its value to a map.
func Put(m *yaml.Node, key string, value *yaml.Node) {
	m.Content = append(m.Content, TextNode(key), value)
}

// TextNode encodes a text, as a literal block if it has several lines.
func TextNode(text string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text}
	if strings.ContainsFunc(text, isControl) {
		n.Style = yaml.DoubleQuotedStyle
		if fitsLiteralBlock(text) {
			n.Style = yaml.LiteralStyle
		}
	}
	return n
}

// fitsLiteralBlock reports whether a literal block preserves text: it has no control characters except line feeds, and
// no white space that a block loses.
func fitsLiteralBlock(text string) bool {
	for i, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		if strings.ContainsFunc(line, isControl) || strings.TrimRight(line, " ") != line || line == "" || i == 0 &&
			line[0] == ' ' {
			return false
		}
	}
	return true
}

// sizeNode encodes a whole number or a name.
func sizeNode(text string) *yaml.Node {
	if n, err := strconv.Atoi(text); err == nil {
		return ValueNode(n)
	}
	return TextNode(text)
}

// ValueNode encodes a decoded value: a number, a truth value, a text, or a list of them in brackets.
func ValueNode(v any) *yaml.Node {
	switch v := v.(type) {
	case nil:
		return TextNode("")
	case string:
		return TextNode(v)
	case []Str:
		return ListNode(yaml.FlowStyle, v, func(s Str) *yaml.Node { return TextNode(s.V) })
	case []int:
		return ListNode(yaml.FlowStyle, v, plainNode)
	case []float64:
		return ListNode(yaml.FlowStyle, v, plainNode)
	}
	return plainNode(v)
}

// plainNode encodes a number, with as many digits as it needs, or a truth value.
func plainNode[T any](v T) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Value: fmt.Sprint(v)} }

// ListNode encodes a list.
func ListNode[T any](style yaml.Style, items []T, write func(T) *yaml.Node) *yaml.Node {
	list := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Style: style}
	for _, item := range items {
		list.Content = append(list.Content, write(item))
	}
	return list
}

// EntryNode encodes an entry of a list: a word, word: value if its only argument is the main one, or word: {arguments}.
func EntryNode(word string, rows []Row, args map[string]Arg) *yaml.Node {
	if len(rows) == 0 {
		return TextNode(word)
	}
	m := MapNode(0)
	if len(rows) == 1 && rows[0].Main {
		Put(m, word, ValueNode(args[rows[0].Name].V))
		return m
	}
	inner := MapNode(yaml.FlowStyle)
	for i := range rows {
		Put(inner, rows[i].Name, ValueNode(args[rows[i].Name].V))
	}
	Put(m, word, inner)
	return m
}
