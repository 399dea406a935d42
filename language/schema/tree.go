// Queries on the nodes of a YAML tree, which change nothing.

package schema

import (
	"strconv"
	"strings"

	"github.com/miplc/miplc/internal/diag"
)

// IsMap reports whether the node is a map, whose keys and values are Keys and Items.
func (n *Node) IsMap() bool { return n.kind == mapNode }

// IsList reports whether the node is a list, whose entries are Items.
func (n *Node) IsList() bool { return n.kind == listNode }

// IsScalar reports whether the node is a single value, null included.
func (n *Node) IsScalar() bool { return n.kind == scalarNode }

// IsValue reports whether the node is a single value other than null.
func (n *Node) IsValue() bool { return n.kind == scalarNode && !n.IsNull() }

// IsText reports whether the node is a text.
func (n *Node) IsText() bool { return n.kind == scalarNode && n.tag == "!!str" }

// IsNull reports whether the node is null.
func (n *Node) IsNull() bool { return n.kind == scalarNode && n.tag == "!!null" }

// Pos returns where the node begins.
func (n *Node) Pos() diag.Pos { return n.pos }

// Raw returns a single value as written, without quotes; "" for lists and maps.
func (n *Node) Raw() string { return n.text }

// Get returns the value of a key of a map, or nil.
func (n *Node) Get(key string) *Node {
	for i, k := range n.keys {
		if k.text == key {
			return n.items[i]
		}
	}
	return nil
}

// Int returns a whole number that is written without quotes.
func (n *Node) Int() (int, bool) {
	if n.kind != scalarNode || n.style != stylePlain || !integerText.MatchString(n.text) {
		return 0, false
	}
	v, err := strconv.Atoi(n.text)
	return v, err == nil
}

// Keys returns the keys of a map; Items()[i] is the value of Keys()[i].
func (n *Node) Keys() []*Node { return n.keys }

// Items returns the entries of a list or the values of a map.
func (n *Node) Items() []*Node { return n.items }

// Flow writes the node on one line of YAML, as --set accepts it.
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
	// YAML accepts every escape that Go writes in double quotes.
	return strconv.Quote(n.text)
}

// WithoutKey returns a copy of a map without one key.
func (n *Node) WithoutKey(key string) *Node {
	out := *n
	out.keys, out.items = nil, nil
	for i, k := range n.keys {
		if k.text != key {
			out.keys, out.items = append(out.keys, k), append(out.items, n.items[i])
		}
	}
	return &out
}
