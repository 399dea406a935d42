package language

import (
	"strconv"
	"strings"

	"github.com/miplc/miplc/internal/diag"
)

// Node is a part of a YAML file for what reads a form of its own.
type Node struct{ n *node }

// IsMap reports a map, whose keys and values are Keys and Items.
func (n Node) IsMap() bool { return n.n.kind == mapNode }

// IsList reports a list, whose entries are Items.
func (n Node) IsList() bool { return n.n.kind == listNode }

// IsValue reports a single value that is there.
func (n Node) IsValue() bool { return n.n.kind == scalarNode && !n.n.isNull() }

// Pos is where the node begins.
func (n Node) Pos() diag.Pos { return n.n.pos }

// Raw is a single value as written, without quotes; "" of lists and maps.
func (n Node) Raw() string { return n.n.text }

// Int is a whole number, written as such.
func (n Node) Int() (int, bool) {
	if n.n.kind != scalarNode || n.n.style != stylePlain || !integerText.MatchString(n.n.text) {
		return 0, false
	}
	v, err := strconv.Atoi(n.n.text)
	return v, err == nil
}

// Keys are the keys of a map, Items[i] the value of the i-th.
func (n Node) Keys() []Node { return wrapNodes(n.n.keys) }

// Items are the entries of a list or the values of a map.
func (n Node) Items() []Node { return wrapNodes(n.n.items) }

func wrapNodes(list []*node) []Node {
	out := make([]Node, len(list))
	for i, n := range list {
		out[i] = Node{n}
	}
	return out
}

// Describe says what the node is, for messages: "the number 3", "a list".
func (n Node) Describe() string { return n.n.describe() }

// Errorf makes a diagnostic that shows the line of the node and underlines it.
func (n Node) Errorf(format string, args ...any) diag.Diagnostic { return n.n.errorf(format, args...) }

// Flow writes the node on one line of YAML, as --set takes it.
func (n Node) Flow() string {
	var b strings.Builder
	n.n.flow(&b)
	return b.String()
}

func (n *node) flow(b *strings.Builder) {
	switch n.kind {
	case scalarNode:
		if n.style == stylePlain && !strings.ContainsAny(n.text, ",[]{}\n") {
			b.WriteString(n.text)
			return
		}
		// A double-quoted scalar of YAML takes every escape that Go writes.
		b.WriteString(strconv.Quote(n.text))
	case listNode:
		b.WriteString("[")
		for i, item := range n.items {
			if i > 0 {
				b.WriteString(", ")
			}
			item.flow(b)
		}
		b.WriteString("]")
	case mapNode:
		b.WriteString("{")
		for i, item := range n.items {
			if i > 0 {
				b.WriteString(", ")
			}
			n.keys[i].flow(b)
			b.WriteString(": ")
			item.flow(b)
		}
		b.WriteString("}")
	}
}
