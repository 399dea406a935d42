package language

import (
	"strconv"
	"strings"

	"github.com/miplc/miplc/internal/diag"
)

// IsMap reports a map, whose keys and values are Keys and Items.
func (n *Node) IsMap() bool { return n.kind == mapNode }

// IsList reports a list, whose entries are Items.
func (n *Node) IsList() bool { return n.kind == listNode }

// IsValue reports a single value that is there.
func (n *Node) IsValue() bool { return n.kind == scalarNode && !n.isNull() }

// Pos is where the node begins.
func (n *Node) Pos() diag.Pos { return n.pos }

// Raw is a single value as written, without quotes; "" of lists and maps.
func (n *Node) Raw() string { return n.text }

// Int is a whole number, written as such.
func (n *Node) Int() (int, bool) {
	if n.kind != scalarNode || n.style != stylePlain || !integerText.MatchString(n.text) {
		return 0, false
	}
	v, err := strconv.Atoi(n.text)
	return v, err == nil
}

// Keys are the keys of a map, Items[i] the value of the i-th.
func (n *Node) Keys() []*Node { return n.keys }

// Items are the entries of a list or the values of a map.
func (n *Node) Items() []*Node { return n.items }

// Flow writes the node on one line of YAML, as --set takes it.
func (n *Node) Flow() string {
	var parts []string
	switch n.kind {
	case listNode:
		for _, item := range n.items {
			parts = append(parts, item.Flow())
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case mapNode:
		for i, item := range n.items {
			parts = append(parts, n.keys[i].Flow()+": "+item.Flow())
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	if n.style == stylePlain && !strings.ContainsAny(n.text, ",[]{}\n") {
		return n.text
	}
	// A double-quoted scalar of YAML takes every escape that Go writes.
	return strconv.Quote(n.text)
}
