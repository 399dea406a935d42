package language

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/miplc/miplc/internal/diag"
)

// Reader decodes the tree of a file by the tables of its language and collects
// what is wrong with it.
type Reader struct {
	*Origin
	dialect *Dialect
	spec    *Spec // nil in other languages
	errs    faults
	model   int // errors about the model, so that none is reported that follows from them
	data    int // errors about the data, which leave its shapes unknown
}

// read decodes root, a map, into a spec with all defaults.
func (r *Reader) read(root *Node) {
	applyDefaults(language, r.spec)
	r.spec.Model.Pos = root.pos // until model is found
	r.section(root, language, "", r.spec)
	if root.get("loss") == nil && r.spec.trained() {
		readLosses(r, "loss", nil, defaultNode(find(language, "loss").Default), nil)
	}
}

// applyDefaults gives what the keys of rows set its defaults. Sections that set
// something of their own get theirs when they are read.
func applyDefaults(rows []Row, to any) {
	for i := range rows {
		switch r := &rows[i]; {
		case r.To == nil:
			applyDefaults(r.Rows, to)
		case r.Rows == nil && r.Own == nil:
			assign(r.To(to), r.defaultArg())
		}
	}
}

// section decodes the keys of a map; path is its dotted name, "" at the top, and to
// what the keys set.
func (r *Reader) section(n *Node, rows []Row, path string, to any) {
	if n.kind != mapNode {
		r.notAMap(n, rows, path)
		return
	}
	meant := map[string]bool{} // by misspelt keys
	for i, key := range n.keys {
		if row := find(rows, key.text); row != nil {
			r.keys = append(r.keys, keyAt{join(path, key.text), key.pos})
			r.key(row, join(path, key.text), key, n.items[i], to)
		} else {
			meant[r.unknownKey(key, rows, path)] = true
		}
	}
	if path == "" && meant["model"] {
		r.model++
	}
	for i := range rows {
		if rows[i].Required && n.get(rows[i].Name) == nil && !meant[rows[i].Name] {
			r.errs.Add(n.Errorf("%s is missing", join(path, rows[i].Name)).WithNote("%s", rows[i].Doc))
		}
	}
}

func (r *Reader) notAMap(n *Node, rows []Row, path string) {
	if path == "" {
		r.errs.Add(r.dialect.notAMap(n))
		return
	}
	d := n.Errorf("%s must be a map, not %s", path, n.Describe())
	key, _, assigned := strings.Cut(n.text, " = ")
	word, value, joined := strings.Cut(n.text, ":")
	switch {
	case n.kind == listNode:
		d = d.WithNote("leave out the dashes")
	case assigned:
		d = d.WithNote("write %s: with a colon", key)
	case joined && slices.Contains(wordsOf(rows), word):
		d = d.WithNote("a blank stands after the colon: %s: %s", word, value)
	}
	r.errs.Add(d.WithNote("known here: %s", strings.Join(wordsOf(rows), ", ")))
}

// entryPath names an entry of a list in messages: by its name, as --set does, or by its
// number, counted from 1.
func entryPath(path string, i int, item *Node) string {
	const long = 60 // bytes, beyond which a name makes no message clearer
	if name := item.get("name"); name != nil && name.text != "" && len(name.text) <= long && !strings.ContainsFunc(name.text, isControl) {
		return join(path, name.text)
	}
	return fmt.Sprintf("%s entry %d", path, i+1)
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// unknownKey reports a key that rows lack, with the place where it does belong.
// It returns the key that was probably meant, if any.
func (r *Reader) unknownKey(key *Node, rows []Row, path string) string {
	where := "at the top level"
	if path != "" {
		where = "in " + path
	}
	d := strange(key.Errorf("unknown key %q %s", key.text, where), key.text)
	if d.Suggestion = suggest(key.text, wordsOf(rows)); d.Suggestion == "" {
		if path == "" && (key.text == "batch" || key.text == "seed") {
			d = d.WithNote("%s is a key of train", key.text)
		} else if home := homeOf(r.dialect.Rows, key.text, ""); home != "" {
			d = d.WithNote("%s is a key of %s", key.text, home)
		}
		if len(rows) == 0 {
			d = d.WithNote("it takes no arguments")
		} else {
			d = d.WithNote("known here: %s", strings.Join(wordsOf(rows), ", "))
		}
	}
	r.errs.Add(d)
	return d.Suggestion
}

// homeOf finds the only section that has a key called name, or "".
func homeOf(rows []Row, name, path string) string {
	home := ""
	for i := range rows {
		if rows[i].Type != Section {
			continue
		}
		sub := join(path, rows[i].Name)
		if find(rows[i].Rows, name) != nil {
			if home != "" {
				return ""
			}
			home = sub
		}
		if deeper := homeOf(rows[i].Rows, name, sub); deeper != "" {
			if home != "" {
				return ""
			}
			home = deeper
		}
	}
	return home
}

// key decodes the value of one known key.
func (r *Reader) key(row *Row, path string, key, n *Node, to any) {
	if n.isNull() {
		d := key.Errorf("%s has no value", path).WithNote("expected %s", row.describeType())
		if !row.Required && path != "model" {
			d = d.WithNote("leave the key out for the default")
		}
		r.errs.Add(d)
		if path == "model" {
			r.model++
		}
		return
	}
	switch row.Type {
	case Section:
		r.subsection(row, path, key, n, to)
	case List:
		items := r.list(n, path, "maps")
		if n.kind == listNode && len(items) == 0 {
			r.errs.Add(n.Errorf("%s is empty", path))
		}
		for i, item := range items {
			r.entry(row, entryPath(path, i, item), item, row.To(to))
		}
	case Form:
		if row.To != nil {
			to = row.To(to)
		}
		row.Own.Read(r, path, key, n, to)
	default:
		if a, ok := r.arg(row, path, n); ok {
			assign(row.To(to), a)
		}
	}
}

// subsection decodes a section within another. A section with a main key may be
// written as the value of that key alone.
func (r *Reader) subsection(row *Row, path string, key, n *Node, to any) {
	before := len(r.errs)
	if r.spec != nil && path == "model" {
		r.spec.Model.Pos = key.pos
	}
	if row.To != nil {
		to = row.To(to)
	}
	r.entry(row, path, n, to)
	switch path {
	case "model":
		r.model += len(r.errs) - before
	case "data":
		r.data += len(r.errs) - before
	}
}

// Fault adds what is wrong with a value.
func (r *Reader) Fault(d diag.Diagnostic) { r.errs.Add(d) }

// placed is what keeps its place in the file.
type placed interface{ Place(diag.Pos) }

// entry decodes a map, or the value of its main key, into what is its own.
func (r *Reader) entry(row *Row, path string, n *Node, to any) {
	if p, ok := to.(placed); ok {
		p.Place(n.pos)
	}
	if row.To != nil {
		applyDefaults(row.Rows, to)
	}
	if main := mainOf(row.Rows); main != nil && n.kind == scalarNode {
		r.key(main, join(path, main.Name), n, n, to)
		return
	}
	r.section(n, row.Rows, path, to)
}

// arg decodes a value of the type of a row.
func (r *Reader) arg(row *Row, path string, n *Node) (Arg, bool) {
	v, ok := types[row.Type].read(r, row, path, n)
	if !ok {
		return Arg{}, false
	}
	return Arg{V: v, Pos: n.pos}, true
}

func (r *Reader) wrongType(row *Row, path string, n *Node) {
	d := n.Errorf("%s must be %s, not %s", path, row.describeType(), n.Describe())
	if n.kind == scalarNode {
		switch {
		case n.style != stylePlain && (row.Type == Whole || row.Type == Real || row.Type == truth):
			d = d.WithNote("leave out the quotes")
		case row.Type == Text && n.tag != "!!str":
			d = d.WithNote("put it in quotes if it is meant as text")
		case row.Type == truth:
			d.Suggestion = plainTruth(n.text)
		case row.Type == Whole || row.Type == Real:
			d.Suggestion = plainNumber(n.text, row.Type == Whole)
			if d.Suggestion == "" && row.Type == Real && n.tag == "!!float" {
				d = d.WithNote("write an ordinary finite number such as 0.01 or 1e-5")
			}
			d = strange(d, n.text)
		case row.Type == wholeList:
			d = d.WithNote("write [%s]", strings.Trim(n.text, "()"))
		}
	}
	r.errs.Add(d)
}

func (r *Reader) text(row *Row, path string, n *Node) (string, bool) {
	if n.kind != scalarNode || n.tag != "!!str" {
		r.wrongType(row, path, n)
		return "", false
	}
	if len(row.Choices) > 0 && !slices.Contains(row.Choices, n.text) {
		d := strange(n.Errorf("%s cannot be %q", path, n.text), n.text)
		if d.Suggestion = suggest(n.text, row.Choices); d.Suggestion == "" {
			d = d.WithNote("it is one of %s", strings.Join(row.Choices, ", "))
		}
		r.errs.Add(d)
		return "", false
	}
	if strings.TrimSpace(n.text) == "" && row.Name != "description" {
		r.errs.Add(n.Errorf("%s is empty", path))
		return "", false
	}
	if row.In.limited() && !row.In.has(float64(utf8.RuneCountInString(n.text))) {
		r.errs.Add(n.Errorf("%s must have at most %v characters", path, row.In.hi))
		return "", false
	}
	if strings.ContainsFunc(n.text, isControl) {
		r.errs.Add(n.Errorf("%s must be one line of text without control characters", path))
		return "", false
	}
	return n.text, true
}

func (r *Reader) truth(row *Row, path string, n *Node) (v, ok bool) {
	if n.kind != scalarNode || n.tag != "!!bool" || n.text != "true" && n.text != "false" {
		r.wrongType(row, path, n)
		return false, false
	}
	return n.text == "true", true
}

func isControl(c rune) bool { return isBreak(c) || c < ' ' || c == 0x7f }

var integerText = regexp.MustCompile(`^[-+]?[0-9]+$`)

func (r *Reader) integer(row *Row, path string, n *Node) (int, bool) {
	if n.kind != scalarNode || n.style != stylePlain || !integerText.MatchString(n.text) {
		r.wrongType(row, path, n)
		return 0, false
	}
	v, err := strconv.ParseInt(n.text, 10, 64)
	if err != nil || !row.In.has(float64(v)) {
		r.outOfRange(row, path, n)
		return 0, false
	}
	return int(v), true
}

var numberText = regexp.MustCompile(`^[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?$`)

func (r *Reader) number(row *Row, path string, n *Node) (float64, bool) {
	if n.kind != scalarNode || n.style != stylePlain || !numberText.MatchString(n.text) {
		r.wrongType(row, path, n)
		return 0, false
	}
	v, err := strconv.ParseFloat(n.text, 64)
	if err != nil || math.IsInf(v, 0) || !row.In.has(v) {
		r.outOfRange(row, path, n)
		return 0, false
	}
	return v + 0, true // -0 becomes 0
}

func (r *Reader) outOfRange(row *Row, path string, n *Node) {
	if v, err := strconv.ParseFloat(n.text, 64); err != nil && !math.IsInf(row.In.hi, 0) || math.IsInf(v, 0) {
		r.errs.Add(n.Errorf("%s is too large a number", path))
		return
	}
	r.errs.Add(n.Errorf("%s must be %s, not %s", path, row.In, n.text))
}

func (r *Reader) integers(row *Row, path string, n *Node) ([]int, bool) {
	if n.kind != listNode {
		r.wrongType(row, path, n)
		return nil, false
	}
	var list []int
	ok := true
	for i, item := range n.items {
		v, good := r.integer(rowOfItem(row, Whole), entryPath(path, i, item), item)
		list, ok = append(list, v), ok && good
	}
	return list, ok
}

// severalIntegers decodes one number or a list of numbers that do not repeat.
func (r *Reader) severalIntegers(row *Row, path string, n *Node) ([]int, bool) {
	if n.kind == scalarNode {
		v, ok := r.integer(rowOfItem(row, Whole), path, n)
		return []int{v}, ok
	}
	list, ok := r.integers(row, path, n)
	for i, v := range list {
		if slices.Contains(list[:i], v) {
			r.errs.Add(n.items[i].Errorf("%d is listed twice in %s", v, path))
			ok = false
		}
	}
	return list, ok && r.notEmpty(path, n)
}

// severalTexts decodes one text or a list of texts that do not repeat.
func (r *Reader) severalTexts(row *Row, path string, n *Node) ([]Str, bool) {
	items := []*Node{n}
	if n.kind == listNode {
		items = n.items
	}
	var list []Str
	ok := n.kind == scalarNode || r.notEmpty(path, n)
	for _, item := range items {
		text, good := r.text(rowOfItem(row, Text), path, item)
		if good && slices.ContainsFunc(list, func(had Str) bool { return had.V == text }) {
			r.errs.Add(item.Errorf("%q is listed twice in %s", text, path))
			good = false
		}
		list, ok = append(list, Str{V: text, Pos: item.pos}), ok && good
	}
	return list, ok
}

func (r *Reader) notEmpty(path string, n *Node) bool {
	if len(n.items) > 0 {
		return true
	}
	r.errs.Add(n.Errorf("%s is empty", path))
	return false
}

func rowOfItem(r *Row, typ Type) *Row {
	item := *r
	item.Type = typ
	return &item
}

// extent decodes an integer or a name; which names are known is checked when
// all sizes have been read.
func (r *Reader) extent(row *Row, path string, n *Node) (string, bool) {
	switch {
	case n.kind == scalarNode && n.tag == "!!str" && identifier.MatchString(n.text):
		return n.text, true
	case n.kind == scalarNode && integerText.MatchString(n.text) && n.style == stylePlain:
		limited := *row
		limited.In = Between(1, maxExtent)
		v, ok := r.integer(&limited, path, n)
		return strconv.Itoa(v), ok
	}
	r.wrongType(row, path, n)
	return "", false
}

// identifier is the form of the names of equations, params and sizes.
var identifier = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]*$`)

// defaultNode parses a default as written in the tables; its nodes have no place.
func defaultNode(text string) *Node {
	var errs faults
	n := parseYAML("", []byte(text), &errs)
	n.place(diag.Pos{})
	return n
}

// place moves a tree to one place outside of any file.
func (n *Node) place(pos diag.Pos) {
	n.pos, n.src = pos, nil
	for _, k := range n.keys {
		k.place(pos)
	}
	for _, v := range n.items {
		v.place(pos)
	}
}
