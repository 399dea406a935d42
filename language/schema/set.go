// Overrides of one value, as --set gives them.

package schema

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/miplc/miplc/internal/diag"
)

// Override sets one value of a document from outside.
type Override struct {
	Text string   // key.key=value; the value is YAML
	Pos  diag.Pos // of the value in another file; zero: it is from the command line
}

// Overrides returns overrides from the command line.
func Overrides(texts []string) []Override {
	list := make([]Override, len(texts))
	for i, text := range texts {
		list[i].Text = text
	}
	return list
}

// Place returns the position of the values that the override sets.
func (o Override) Place() diag.Pos {
	o.Pos.Setting = cmp.Or(o.Pos.Setting, o.Text)
	return o.Pos
}

// overrideLayer is above the layers of all files, which are at most 0.
const overrideLayer = 1

// override applies an override to the tree. A key after a list is the kind or name of an
// entry, as in loss.attention=0.01 and learners.demipl.r=1.
func (l *loader) override(root *Node, o Override) *Node {
	pos := o.Place()
	keys, value, found := strings.Cut(o.Text, "=")
	if !found {
		l.skip(diag.Errorf(pos, "no value").WithNote("write %s=VALUE", cmp.Or(strings.TrimSpace(o.Text), "KEY")))
		return root
	}
	v := parseSetValue(value, pos, &l.faults)
	if v == nil {
		l.skipped = true
		return root
	}
	path := strings.Split(strings.TrimSpace(keys), ".")
	if slices.Contains(path, "") {
		l.skip(diag.Errorf(pos, "the key %q is empty or has an empty part", keys))
		return root
	}
	if path[0] == ExtendsRow.Name {
		l.skip(diag.Errorf(pos, "extends cannot be set from outside").WithNote("name the other %s instead of this one",
			l.dialect.Noun))
		return root
	}
	if root.kind != mapNode {
		return root
	}
	if row := Find(l.dialect.Rows, path[0]); len(path) > 1 && row != nil && row.Type == Custom && row.Default != "" &&
		root.Get(path[0]) == nil {
		root = l.dialect.merge(root, wrap(path[:1], defaultNode(row.Default), diag.Pos{}), false)
	}
	out, err := l.put(root, path, v, pos, false)
	if err != nil {
		d := diag.Diagnostic{Text: err.Error()}
		errors.As(err, &d)
		d.Pos = pos
		l.skip(d)
		return root
	}
	return out
}

// parseSetValue reads the value of an override. An empty text is a null node. It returns nil after
// an error.
func parseSetValue(text string, pos diag.Pos, errs *diag.List) *Node {
	if strings.TrimSpace(text) == "" {
		return &Node{tag: "!!null", pos: pos}
	}
	var found diag.List
	n := parseYAML(pos.Source(), []byte(text), &found)
	if n == nil || len(found) > 0 {
		for _, d := range found {
			errs.Add(diag.Diagnostic{Pos: pos, Text: d.Text, Notes: d.Notes})
		}
		if len(found) == 0 {
			errs.Add(diag.Errorf(pos, "the value cannot be read"))
		}
		return nil
	}
	n.moveTo(pos)
	return n
}

// put replaces the value at path under n. literal reports whether n is a Literal map.
func (l *loader) put(n *Node, path []string, v *Node, pos diag.Pos, literal bool) (*Node, error) {
	if len(path) == 0 {
		return v, nil
	}
	if n == nil || n.kind == scalarNode && n.IsNull() {
		return wrap(path, v, pos), nil
	}
	switch n.kind {
	case mapNode:
		inside := l.dialect.literal(path[0])
		if inside && len(path) > 2 {
			path = []string{path[0], strings.Join(path[1:], ".")}
		}
		under, err := l.put(n.Get(path[0]), path[1:], v, pos, inside)
		if err != nil {
			return nil, err
		}
		// Lists and values replace the old value; maps are merged, and what they lack is missing in the file.
		out := l.dialect.merge(n, wrap(path[:1], under, pos), literal)
		out.pos, out.src = n.pos, n.src
		return out, nil
	case listNode:
		return l.putEntry(n, path, v, pos)
	}
	// The value is a scalar such as "attention: 0.001", which cannot have further arguments.
	return nil, fmt.Errorf("%s is inside of %s, which is not a map", strings.Join(path, "."), n.Describe())
}

// putEntry replaces an entry of a list, or one of its arguments.
func (l *loader) putEntry(n *Node, path []string, v *Node, pos diag.Pos) (*Node, error) {
	index, err := n.findEntry(path[0])
	if err != nil {
		return nil, err
	}
	out := *n
	out.items = append([]*Node(nil), n.items...)
	word, _, args := n.items[index].entry()
	arguments := path[1:]
	switch main := MainRow(l.dialect.Arguments(word)); {
	case word == "":
		out.items[index], err = l.put(args, arguments, v, pos, false)
		return &out, err
	case args == nil, len(arguments) == 0 && path[0] == word:
		out.items[index] = wrap(path, v, pos)
		return &out, nil
	case len(arguments) == 0 && v.kind == mapNode:
		v = l.dialect.merge(args, v, false)
	case len(arguments) == 0:
		v, err = l.put(args, []string{l.dialect.optionalArgument(word)}, v, pos, false)
	case args.kind == scalarNode && main != nil: // word: value becomes word: {main: value}
		v, err = l.put(wrap([]string{main.Name}, args, args.pos), arguments, v, pos, false)
	default:
		v, err = l.put(args, arguments, v, pos, false)
	}
	if err == nil {
		out.items[index] = wrap([]string{word}, v, pos)
	}
	return &out, err
}

// entry returns the parts of an entry of a list, which is a word, word: arguments, or a map with a name and without a
// word. Arguments may contain a name; the word is the name of other entries. args is nil for a plain word.
func (n *Node) entry() (word, name string, args *Node) {
	switch {
	case n.kind == scalarNode:
		return n.text, n.text, nil
	case len(n.keys) == 1 && n.keys[0].text != "name":
		word, args = n.keys[0].text, n.items[0]
		name = word
	default:
		args = n
	}
	if own := args.Get("name"); own != nil {
		name = own.text
	}
	return word, name, args
}

// findEntry returns the index of the entry of a list that has a name or a word.
func (n *Node) findEntry(name string) (index int, err error) {
	var names []string
	index, found := -1, 0
	for i, item := range n.items {
		word, own, _ := item.entry()
		if own != "" {
			names = append(names, own)
		}
		if word == name || own == name {
			index, found = i, found+1
		}
	}
	switch {
	case found == 1:
		return index, nil
	case found > 1 && slices.Contains(names, name):
		return 0, fmt.Errorf("the list has more than one %s; set the whole list", name)
	case found > 1:
		return 0, fmt.Errorf("the list has more than one %s: name one of %s", name, diag.Words(names))
	case len(names) > 0:
		return 0, diag.Diagnostic{Text: fmt.Sprintf("the list has no %s, only %s", name, diag.Words(names)),
			Suggestion: diag.Suggest(name, names)}
	}
	return 0, fmt.Errorf("the list has no %s", name)
}

// optionalArgument returns the name of the first argument that an entry need not have, such as the weight of a named
// term.
func (d *Dialect) optionalArgument(word string) string {
	for _, row := range d.Arguments(word) {
		if !row.Required {
			return row.Name
		}
	}
	return ""
}

// wrap builds the maps that path names around v.
func wrap(path []string, v *Node, pos diag.Pos) *Node {
	for _, p := range slices.Backward(path) {
		key := &Node{tag: "!!str", text: p, pos: pos}
		v = &Node{kind: mapNode, pos: pos, keys: []*Node{key}, items: []*Node{v}}
	}
	return v
}
