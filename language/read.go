package language

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/miplc/miplc/internal/diag"
)

// reader decodes the merged tree of a spec and collects what is wrong with it.
type reader struct {
	spec  *Spec
	files map[string]*source
	errs  faults
	model int // errors about the model, so that none is reported that follows from them
	data  int // errors about the data, which leave its shapes unknown
}

// read decodes root, a map, into a spec with all defaults.
func (r *reader) read(root *node) {
	applyDefaults(r.spec, language)
	r.spec.Model.Pos = root.pos // until model is found
	r.section(root, language, "")
	if root.get("loss") == nil && r.spec.trained() {
		r.losses(defaultNode(find(language, "loss").def), "loss")
	}
}

// applyDefaults gives every key of rows that a Value holds its default.
func applyDefaults(s *Spec, rows []row) {
	for i := range rows {
		if r := &rows[i]; r.to != nil {
			assign(r.to(s), r.defaultArg())
		}
		applyDefaults(s, rows[i].rows)
	}
}

// defaultArg is the default of a key as a decoded value without a place.
func (r *row) defaultArg() Arg {
	var a Arg
	if r.def == "" {
		return a
	}
	switch r.typ {
	case tInt:
		a.Int, _ = strconv.Atoi(r.def)
	case tFloat:
		a.Float, _ = strconv.ParseFloat(r.def, 64)
	case tBool:
		a.Bool = r.def == "true"
	default:
		a.Str = r.def
	}
	return a
}

func assign(to any, a Arg) {
	switch to := to.(type) {
	case *Str:
		*to = Str{V: a.Str, Pos: a.Pos}
	case *Int:
		*to = Int{V: a.Int, Pos: a.Pos}
	case *Float:
		*to = Float{V: a.Float, Pos: a.Pos}
	case *Bool:
		*to = Bool{V: a.Bool, Pos: a.Pos}
	case *Ints:
		*to = Ints{V: a.Ints, Pos: a.Pos}
	}
}

// section decodes the keys of a map; path is its dotted name, "" at the top.
func (r *reader) section(n *node, rows []row, path string) {
	if n.kind != mapNode {
		r.errs.Add(n.errorf("%s must be a map, not %s", path, n.describe()))
		return
	}
	meant := map[string]bool{} // by misspelt keys
	for i, key := range n.keys {
		if row := find(rows, key.text); row != nil {
			r.spec.keys = append(r.spec.keys, keyAt{join(path, key.text), key.pos})
			r.key(row, join(path, key.text), key, n.items[i])
		} else {
			meant[r.unknownKey(key, rows, path)] = true
		}
	}
	if path == "" && meant["model"] {
		r.model++
	}
	for i := range rows {
		if rows[i].required && n.get(rows[i].name) == nil && !meant[rows[i].name] {
			r.errs.Add(n.errorf("%s is missing", join(path, rows[i].name)).WithNote("%s", rows[i].doc))
		}
	}
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// unknownKey reports a key that rows lack, with the place where it does belong.
// It returns the key that was probably meant, if any.
func (r *reader) unknownKey(key *node, rows []row, path string) string {
	where := "at the top level"
	if path != "" {
		where = "in " + path
	}
	d := key.errorf("unknown key %q %s", key.text, where)
	if d.Suggestion = diag.Suggest(key.text, namesOf(rows)); d.Suggestion == "" {
		if path == "" && (key.text == "batch" || key.text == "seed") {
			d = d.WithNote("%s is a key of train", key.text)
		} else if home := homeOf(language, key.text, ""); home != "" {
			d = d.WithNote("%s is a key of %s", key.text, home)
		}
		if len(rows) == 0 {
			d = d.WithNote("it takes no arguments")
		} else {
			d = d.WithNote("known here: %s", strings.Join(namesOf(rows), ", "))
		}
	}
	r.errs.Add(d)
	return d.Suggestion
}

// homeOf finds the only section that has a key called name, or "".
func homeOf(rows []row, name, path string) string {
	home := ""
	for i := range rows {
		if rows[i].typ != tSection {
			continue
		}
		sub := join(path, rows[i].name)
		if find(rows[i].rows, name) != nil {
			if home != "" {
				return ""
			}
			home = sub
		}
		if deeper := homeOf(rows[i].rows, name, sub); deeper != "" {
			if home != "" {
				return ""
			}
			home = deeper
		}
	}
	return home
}

// key decodes the value of one known key.
func (r *reader) key(row *row, path string, key, n *node) {
	if n.isNull() {
		d := key.errorf("%s has no value", path).WithNote("expected %s", row.describeType())
		if !row.required {
			d = d.WithNote("leave the key out for the default")
		}
		r.errs.Add(d)
		return
	}
	switch row.typ {
	case tSection:
		if row.name == "model" {
			r.spec.Model.Pos = key.pos
			before := len(r.errs)
			defer func() { r.model += len(r.errs) - before }()
		}
		if path == "data" {
			before := len(r.errs)
			defer func() { r.data += len(r.errs) - before }()
		}
		r.section(n, row.rows, path)
	case tBlocks:
		r.blocks(n, path)
	case tSizes:
		r.sizes(n, path)
	case tNumbers:
		r.numbers(n, path)
	case tParams:
		r.params(n, path)
	case tLet:
		r.let(n, path)
	case tLosses:
		r.losses(n, path)
	case tLearner:
		r.learner(key, n)
	case tExpression: // weights.update; loss equations are read with their term
		r.spec.Weights.Update = r.equation(Str{V: row.name, Pos: key.pos}, path, n)
	default:
		if a, ok := r.arg(row, path, n); ok {
			assign(row.to(r.spec), a)
		}
	}
}

// arg decodes a value of the type of a row.
func (r *reader) arg(row *row, path string, n *node) (Arg, bool) {
	a := Arg{Pos: n.pos}
	ok := false
	switch row.typ {
	case tString:
		a.Str, ok = r.text(row, path, n)
	case tInt:
		a.Int, ok = r.integer(row, path, n)
	case tFloat:
		a.Float, ok = r.number(row, path, n)
	case tBool:
		if ok = n.tag == "!!bool" && n.kind == scalarNode; ok {
			a.Bool = n.text == "true"
		}
		if ok = ok && (n.text == "true" || n.text == "false"); !ok {
			r.wrongType(row, path, n)
		}
	case tInts:
		a.Ints, ok = r.integers(row, path, n)
	case tExtent:
		a.Str, ok = r.extent(row, path, n)
	}
	return a, ok
}

func (r *reader) wrongType(row *row, path string, n *node) {
	d := n.errorf("%s must be %s, not %s", path, row.describeType(), n.describe())
	if n.kind == scalarNode {
		switch {
		case n.style != stylePlain && (row.typ == tInt || row.typ == tFloat || row.typ == tBool):
			d = d.WithNote("leave out the quotes")
		case row.typ == tString && n.tag != "!!str":
			d = d.WithNote("put it in quotes if it is meant as text")
		case row.typ == tFloat && n.tag == "!!float":
			d = d.WithNote("write an ordinary finite number such as 0.01 or 1e-5")
		case row.typ == tInts:
			d = d.WithNote("write [%s]", n.text)
		}
	}
	r.errs.Add(d)
}

func (r *reader) text(row *row, path string, n *node) (string, bool) {
	if n.kind != scalarNode || n.tag != "!!str" {
		r.wrongType(row, path, n)
		return "", false
	}
	if len(row.choices) > 0 && !slices.Contains(row.choices, n.text) {
		d := n.errorf("%s cannot be %q", path, n.text)
		if d.Suggestion = diag.Suggest(n.text, row.choices); d.Suggestion == "" {
			d = d.WithNote("it is one of %s", strings.Join(row.choices, ", "))
		}
		r.errs.Add(d)
		return "", false
	}
	if strings.TrimSpace(n.text) == "" && row.name != "description" {
		r.errs.Add(n.errorf("%s is empty", path))
		return "", false
	}
	if strings.ContainsFunc(n.text, isControl) {
		r.errs.Add(n.errorf("%s must be one line of text without control characters", path))
		return "", false
	}
	return n.text, true
}

func isControl(c rune) bool { return isBreak(c) || c < ' ' || c == 0x7f }

var integerText = regexp.MustCompile(`^[-+]?[0-9]+$`)

func (r *reader) integer(row *row, path string, n *node) (int, bool) {
	if n.kind != scalarNode || n.style != stylePlain || !integerText.MatchString(n.text) {
		r.wrongType(row, path, n)
		return 0, false
	}
	v, err := strconv.ParseInt(n.text, 10, 64)
	if err != nil || !row.in.has(float64(v)) {
		r.outOfRange(row, path, n)
		return 0, false
	}
	return int(v), true
}

var numberText = regexp.MustCompile(`^[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?$`)

func (r *reader) number(row *row, path string, n *node) (float64, bool) {
	if n.kind != scalarNode || n.style != stylePlain || !numberText.MatchString(n.text) {
		r.wrongType(row, path, n)
		return 0, false
	}
	v, err := strconv.ParseFloat(n.text, 64)
	if err != nil || math.IsInf(v, 0) || !row.in.has(v) {
		r.outOfRange(row, path, n)
		return 0, false
	}
	return v + 0, true // -0 becomes 0
}

func (r *reader) outOfRange(row *row, path string, n *node) {
	if v, err := strconv.ParseFloat(n.text, 64); err != nil && !math.IsInf(row.in.hi, 0) || math.IsInf(v, 0) {
		r.errs.Add(n.errorf("%s is too large a number", path))
		return
	}
	r.errs.Add(n.errorf("%s must be %s, not %s", path, row.in, n.text))
}

func (r *reader) integers(row *row, path string, n *node) ([]int, bool) {
	if n.kind != listNode {
		r.wrongType(row, path, n)
		return nil, false
	}
	var list []int
	ok := true
	for i, item := range n.items {
		v, good := r.integer(rowOfItem(row, tInt), fmt.Sprintf("%s[%d]", path, i), item)
		list, ok = append(list, v), ok && good
	}
	return list, ok
}

func rowOfItem(r *row, typ valueType) *row {
	item := *r
	item.typ = typ
	return &item
}

// extent decodes an integer or a name; which names are known is checked when
// all sizes have been read.
func (r *reader) extent(row *row, path string, n *node) (string, bool) {
	switch {
	case n.kind == scalarNode && n.tag == "!!str" && identifier.MatchString(n.text):
		return n.text, true
	case n.kind == scalarNode && integerText.MatchString(n.text) && n.style == stylePlain:
		limited := *row
		limited.in = between(1, maxExtent)
		v, ok := r.integer(&limited, path, n)
		return strconv.Itoa(v), ok
	}
	r.wrongType(row, path, n)
	return "", false
}

// identifier is the form of the names of equations, params and sizes.
var identifier = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]*$`)

// defaultNode parses a default as written in the tables; its nodes have no place.
func defaultNode(text string) *node {
	var errs faults
	n := parseYAML("", []byte(text), &errs)
	n.place(diag.Pos{})
	return n
}

// place moves a tree to one place outside of any file.
func (n *node) place(pos diag.Pos) {
	n.pos, n.src = pos, nil
	for _, k := range n.keys {
		k.place(pos)
	}
	for _, v := range n.items {
		v.place(pos)
	}
}
