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
	return encode(s.section(language))
}

// encode writes a tree of plain nodes.
func encode(tree *yaml.Node) []byte {
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

func (n *Node) plain() *yaml.Node {
	switch n.kind {
	case listNode:
		return listOfNodes(0, n.items, (*Node).plain)
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

// SettingsHash identifies what is trained, whatever it is called and whatever bags it
// is trained on: the hash of the spec without its name, description, dataset and split.
func (s *Spec) SettingsHash() string {
	c := *s
	c.Name, c.Description = Str{}, Str{}
	c.Data.Set, c.Data.Generated, c.Data.Split = Str{}, Generated{}, Split{}
	return c.Hash()
}

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

func listOfNodes[T any](style yaml.Style, items []T, write func(T) *yaml.Node) *yaml.Node {
	list := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Style: style}
	for _, item := range items {
		list.Content = append(list.Content, write(item))
	}
	return list
}

func (s *Spec) section(rows []Row) *yaml.Node {
	m := mapping(0)
	for i := range rows {
		switch r := &rows[i]; {
		case r.holds != nil && !r.holds(s):
		case r.Type == Section:
			put(m, r.Name, s.section(r.Rows))
		case r.Type == Form:
			put(m, r.Name, r.Own.write(s))
		default:
			put(m, r.Name, valueNode(r.To(s).(interface{ value() any }).value()))
		}
	}
	return m
}

// entryNode writes a block or loss term: a word, word: value where it has the
// main argument alone, or word: {arguments}.
func entryNode(word string, rows []Row, args map[string]Arg) *yaml.Node {
	if len(rows) == 0 {
		return textNode(word)
	}
	m := mapping(0)
	if len(rows) == 1 && rows[0].Main {
		put(m, word, valueNode(args[rows[0].Name].V))
		return m
	}
	inner := mapping(yaml.FlowStyle)
	for i := range rows {
		put(inner, rows[i].Name, valueNode(args[rows[i].Name].V))
	}
	put(m, word, inner)
	return m
}

func paramNode(p Param) *yaml.Node {
	m := mapping(yaml.FlowStyle)
	put(m, "shape", listOfNodes(yaml.FlowStyle, p.Shape, func(e Str) *yaml.Node { return extentNode(e.V) }))
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
