// Reading of sections by their tables of keys.

package schema

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"github.com/miplc/miplc/internal/diag"
)

// Reader decodes the tree of a file by the tables of its language and collects
// diagnostics.
type Reader struct {
	*Origin
	dialect     *Dialect
	faults      diag.List
	faultCounts map[string]int // see FaultsIn
}

// FaultsIn returns the number of faults found in a top-level section, so that callers need not report errors that
// follow from them.
func (r *Reader) FaultsIn(section string) int { return r.faultCounts[section] }

// section decodes the keys of a map. path is its dotted name, "" at the top level. to is the value
// whose fields the keys set.
func (r *Reader) section(n *Node, rows []Row, path string, to any) {
	if n.kind != mapNode {
		r.notAMap(n, rows, path)
		return
	}
	meant := map[string]bool{} // by misspelt keys
	for i, key := range n.keys {
		before := len(r.faults)
		name := key.text
		if row := Find(rows, name); row != nil {
			r.keys = append(r.keys, keyAt{join(path, name), key.pos})
			r.key(row, join(path, name), key, n.items[i], to)
		} else if name = r.unknownKey(key, rows, path); name != "" {
			meant[name] = true
		}
		if path == "" {
			r.faultCounts[name] += len(r.faults) - before
		}
	}
	for i := range rows {
		row := &rows[i]
		if n.Get(row.Name) != nil {
			continue
		}
		switch {
		case row.Type == Custom && row.Default != "" && (row.Applies == nil || row.Applies(to)):
			row.Custom.Read(r, join(path, row.Name), nil, defaultNode(row.Default), row.target(to))
		case row.Required && !meant[row.Name]:
			r.faults.Add(n.Errorf("%s is missing", join(path, row.Name)).WithNote("%s", Plain(row.Doc)))
		}
	}
}

func (r *Reader) notAMap(n *Node, rows []Row, path string) {
	if path == "" {
		r.faults.Add(r.dialect.notAMap(n))
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
	case joined && slices.Contains(Words(rows), word):
		d = d.WithNote("write a space after the colon: %s: %s", word, value)
	}
	r.faults.Add(d.WithNote("known here: %s", strings.Join(Words(rows), ", ")))
}

// EntryPath returns the path of item i of a list for messages: with its name, as in --set, or with
// its number, counted from 1.
func EntryPath(path string, i int, item *Node) string {
	const long = 60 // bytes, beyond which a name makes no message clearer
	if name := item.Get("name"); name != nil && name.text != "" && len(name.text) <= long &&
		!strings.ContainsFunc(name.text, isControl) {
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

// unknownKey reports a key that is not in rows, with the section that has it. It returns the key
// that was probably meant, or "".
func (r *Reader) unknownKey(key *Node, rows []Row, path string) string {
	where := "at the top level"
	if path != "" {
		where = "in " + path
	}
	advice, known := r.dialect.Advice[plainWord(key.text)], "it takes no arguments"
	if home := r.home(path, key.text); advice == "" && home != "" {
		advice = fmt.Sprintf("%s is a key %s", key.text, home)
	}
	if len(rows) > 0 {
		known = "known here: " + strings.Join(Words(rows), ", ")
	}
	d := noteStrangeCharacter(key.Errorf("unknown key %q %s", key.text, where), key.text)
	if d.Suggestion = r.dialect.Suggest(key.text, Words(rows)); d.Suggestion == "" {
		d = d.WithNote("%s", advice).WithNote("%s", known)
	}
	r.faults.Add(d)
	return d.Suggestion
}

// CheckSetting returns the faults of a dotted key, such as train.lr, and of values for it. It does not look into lists
// and maps, whose entries depend on the file.
func (d *Dialect) CheckSetting(key *Node, values []*Node) diag.List {
	r, rows, path, start := &Reader{Origin: &Origin{}, dialect: d}, d.Rows, "", 0
	for _, name := range strings.Split(key.text, ".") {
		row := Find(rows, name)
		if row == nil {
			part := *key
			if part.text = name; key.Positions() != nil {
				part.pos = key.Positions()[start]
			}
			r.unknownKey(&part, rows, path)
			break
		}
		rows, path, start = row.Rows, join(path, name), start+len(name)+1
		if path == key.text && types[row.Type].read != nil {
			for _, v := range values {
				if v.IsNull() {
					r.key(row, path, v, v, nil)
				} else {
					r.Value(row, path, v)
				}
			}
		}
		if row.Type != Section {
			break
		}
	}
	return r.faults
}

// home returns where a key that is unknown in path is known: below path, at the top level or
// elsewhere. It returns "" if that is not clear.
func (r *Reader) home(path, name string) string {
	home := homeOf(r.dialect.Rows, name)
	top := path != "" && Find(r.dialect.Rows, name) != nil
	switch {
	case top && !strings.HasPrefix(home, path+"."):
		return "at the top level"
	case home != "":
		return "of " + home
	}
	return ""
}

// homeOf returns the dotted path of the section with a key called name. If there are several it
// returns the one nearest to the top level, or "" if there is not exactly one.
func homeOf(rows []Row, name string) string {
	homes := sectionsWith(name, "", rows)
	depth := func(path string) int { return strings.Count(path, ".") }
	slices.SortStableFunc(homes, func(a, b string) int { return depth(a) - depth(b) })
	if len(homes) == 0 || len(homes) > 1 && depth(homes[0]) == depth(homes[1]) {
		return ""
	}
	return homes[0]
}

// sectionsWith lists the dotted paths of the sections with a key called name.
func sectionsWith(name, path string, rows []Row) (homes []string) {
	for _, r := range rows {
		if r.Type == Section && Find(r.Rows, name) != nil {
			homes = append(homes, join(path, r.Name))
		}
		homes = append(homes, sectionsWith(name, join(path, r.Name), r.Rows)...)
	}
	return homes
}

// valueWithoutKey names the value that a key gets if the file does not have it.
func (r *Reader) valueWithoutKey() string {
	if len(r.files) > 1 {
		return "the inherited value, or set it to its default"
	}
	return "the default"
}

// key decodes the value of one known key.
func (r *Reader) key(row *Row, path string, key, n *Node, to any) {
	if n.IsNull() {
		d := key.Errorf("%s has no value", path).WithNote("expected %s", row.DescribeType())
		if !row.Required && (row.Type != Section || hasDefault(row.Rows)) {
			d = d.WithNote("leave the key out for %s", r.valueWithoutKey())
		}
		r.faults.Add(d)
		return
	}
	switch row.Type {
	case Section:
		r.Section(row.Rows, path, n, row.target(to))
	case List:
		items := r.List(n, path, "maps")
		if n.kind == listNode && len(items) == 0 {
			r.faults.Add(n.Errorf("%s is empty", path))
		}
		for i, item := range items {
			r.Section(row.Rows, EntryPath(path, i, item), item, row.Field(to))
		}
	case Custom:
		row.Custom.Read(r, path, key, n, row.target(to))
	default:
		if a, ok := r.Value(row, path, n); ok {
			assign(row.Field(to), a)
		}
	}
}

// hasDefault reports whether any key of a section has a default.
func hasDefault(rows []Row) bool {
	return slices.ContainsFunc(rows, func(r Row) bool { return r.Default != "" || hasDefault(r.Rows) })
}

// AddFault adds a diagnostic.
func (r *Reader) AddFault(d diag.Diagnostic) { r.faults.Add(d) }

// withPos is a value that keeps its position in the file.
type withPos interface{ SetPos(diag.Pos) }

// Section decodes a map, or the value of its main key, into to.
func (r *Reader) Section(rows []Row, path string, n *Node, to any) {
	if p, ok := to.(withPos); ok {
		p.SetPos(n.pos)
	}
	applyDefaults(rows, to)
	if main := MainRow(rows); main != nil && (n.kind == scalarNode || n.kind == listNode && main.Type == SizeList) {
		r.key(main, join(path, main.Name), n, n, to)
		return
	}
	r.section(n, rows, path, to)
}

// Value decodes a single value of the type of a row. ok is false after an error.
func (r *Reader) Value(row *Row, path string, n *Node) (Arg, bool) {
	v, ok := types[row.Type].read(r, row, path, n)
	if !ok {
		return Arg{}, false
	}
	return Arg{V: v, Pos: n.pos}, true
}

func (r *Reader) wrongType(row *Row, path string, n *Node) {
	d := n.Errorf("%s must be %s, not %s", path, row.DescribeType(), n.Describe())
	if n.kind == scalarNode {
		plain := row.Type == Whole || row.Type == Real || row.Type == Truth
		switch {
		case plain && n.style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
			d = d.WithNote("write it in the line of the key, without | or >")
		case plain && n.style != 0:
			d = d.WithNote("leave out the quotes")
		case row.Type == Text && row.Choices == nil && n.tag != "!!str":
			d = d.WithNote("put it in quotes if it is meant as text")
		case row.Type == Truth:
			d.Suggestion = plainTruth(n.text)
		case row.Type == Whole || row.Type == Real:
			d.Suggestion = plainNumber(n.text, row.Type == Whole)
			if v, err := strconv.ParseFloat(d.Suggestion, 64); err == nil && !row.In.Has(v) {
				d.Suggestion = ""
				d = d.WithNote("it must be %s", row.In)
			}
			if d.Suggestion == "" && row.Type == Real && n.tag == "!!float" {
				d = d.WithNote("write an ordinary finite number such as 0.01 or 1e-5")
			}
			d = noteStrangeCharacter(d, n.text)
		case row.Type == WholeList || row.Type == RealList || row.Type == SizeList:
			d = d.WithNote("write [%s]", strings.Trim(n.text, "()"))
		}
	}
	r.faults.Add(d)
}

// Text decodes a text. ok is false after an error.
func (r *Reader) Text(row *Row, path string, n *Node) (string, bool) {
	if n.kind != scalarNode || n.tag != "!!str" {
		r.wrongType(row, path, n)
		return "", false
	}
	if len(row.Choices) > 0 && !slices.Contains(row.Choices, n.text) {
		r.faults.Add(noteStrangeCharacter(n.Errorf("%s cannot be %q", path, n.text), n.text).
			SuggestOr(r.dialect.Suggest(n.text, row.Choices), "it is one of %s", strings.Join(row.Choices, ", ")))
		return "", false
	}
	if strings.TrimSpace(n.text) == "" && !row.MayBeEmpty {
		r.faults.Add(n.Errorf("%s is empty", path))
		return "", false
	}
	if row.In.limited() && !row.In.Has(float64(utf8.RuneCountInString(n.text))) {
		r.faults.Add(n.Errorf("%s must have at most %v characters", path, row.In.hi))
		return "", false
	}
	if strings.ContainsFunc(n.text, isControl) {
		r.faults.Add(n.Errorf("%s must be one line of text without control characters", path))
		return "", false
	}
	return n.text, true
}

func isControl(c rune) bool { return IsBreak(c) || c < ' ' || c == 0x7f }

var integerText = regexp.MustCompile(`^[-+]?[0-9]+$`)

func (r *Reader) whole(row *Row, path string, n *Node) (int, bool) {
	if !n.isPlain() || !integerText.MatchString(n.text) {
		r.wrongType(row, path, n)
		return 0, false
	}
	v, err := strconv.ParseInt(n.text, 10, 64)
	if err != nil || !row.In.Has(float64(v)) {
		r.outOfRange(row, path, n)
		return 0, false
	}
	return int(v), true
}

// IsNumber reports whether text is a number as documents write it, such as 2, 0.5 or 1e-5.
func IsNumber(text string) bool { return numberText.MatchString(text) }

var numberText = regexp.MustCompile(`^[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?$`)

func (r *Reader) real(row *Row, path string, n *Node) (float64, bool) {
	if !n.isPlain() || !numberText.MatchString(n.text) {
		r.wrongType(row, path, n)
		return 0, false
	}
	v, err := strconv.ParseFloat(n.text, 64)
	if err != nil || math.IsInf(v, 0) || !row.In.Has(v) {
		r.outOfRange(row, path, n)
		return 0, false
	}
	return v + 0, true // -0 becomes 0
}

func (r *Reader) outOfRange(row *Row, path string, n *Node) {
	if v, err := strconv.ParseFloat(n.text, 64); err != nil && !math.IsInf(row.In.hi, 0) || math.IsInf(v, 0) {
		r.faults.Add(n.Errorf("%s is too large a number", path))
		return
	}
	r.faults.Add(n.Errorf("%s must be %s, not %s", path, row.In, n.text))
}

// listOf decodes a list of values of one type.
func listOf[T any](of Type, read reading[T]) reading[[]T] {
	return func(r *Reader, row *Row, path string, n *Node) (list []T, ok bool) {
		if n.kind != listNode {
			r.wrongType(row, path, n)
			return nil, false
		}
		ok = true
		for i, item := range n.items {
			v, good := read(r, rowOfItem(row, of), EntryPath(path, i, item), item)
			list, ok = append(list, v), ok && good
		}
		return list, ok
	}
}

// oneOrMore decodes one value or a list of values that do not repeat.
func oneOrMore[T comparable](of Type, read reading[T]) reading[[]Value[T]] {
	return func(r *Reader, row *Row, path string, n *Node) (list []Value[T], ok bool) {
		items := []*Node{n}
		switch n.kind {
		case listNode:
			items = n.items
		case mapNode:
			r.wrongType(row, path, n)
			return nil, false
		}
		if ok = len(items) > 0; !ok {
			r.faults.Add(n.Errorf("%s is empty", path))
		}
		for i, item := range items {
			at := path
			if n.kind == listNode {
				at = EntryPath(path, i, item)
			}
			v, good := read(r, rowOfItem(row, of), at, item)
			if good && slices.ContainsFunc(list, func(had Value[T]) bool { return had.V == v }) {
				r.faults.Add(item.Errorf("%#v is listed twice in %s", v, path))
				good = false
			}
			list, ok = append(list, Value[T]{V: v, Pos: item.pos}), ok && good
		}
		return list, ok
	}
}

func rowOfItem(r *Row, typ Type) *Row {
	item := *r
	item.Type = typ
	return &item
}

// size decodes a whole number or a name. The caller checks which names exist.
func (r *Reader) size(row *Row, path string, n *Node) (string, bool) {
	switch {
	case n.kind == scalarNode && n.tag == "!!str" && identifier.MatchString(n.text):
		return n.text, true
	case n.isPlain() && integerText.MatchString(n.text):
		limited := *row
		limited.In = Closed(1, MaxSize)
		v, ok := r.whole(&limited, path, n)
		return strconv.Itoa(v), ok
	}
	r.wrongType(row, path, n)
	return "", false
}

// identifier is the pattern of names that documents define.
var identifier = regexp.MustCompile(identifierPattern)

// IsIdentifier reports whether name has letters, digits and underscores only and starts with a letter.
func IsIdentifier(name string) bool { return identifier.MatchString(name) }

// defaultNode parses a default as written in the tables; its nodes have no position.
func defaultNode(text string) *Node {
	var errs diag.List
	n := parseYAML("", []byte(text), &errs)
	n.moveTo(diag.Pos{})
	return n
}

// moveTo moves a tree to one position outside of any file.
func (n *Node) moveTo(pos diag.Pos) {
	n.pos, n.src = pos, nil
	for _, k := range n.keys {
		k.moveTo(pos)
	}
	for _, v := range n.items {
		v.moveTo(pos)
	}
}
