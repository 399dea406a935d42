package language

import (
	"fmt"
	"strings"
)

// An entry of a list of blocks or loss terms: a word and what it is given.
type entry struct {
	word *node
	args *node // nil for a plain word
}

// entryOf splits one item of a list; what names the kind of list in messages.
func (r *Reader) entryOf(n *node, what string) (entry, bool) {
	switch {
	case n.kind == scalarNode && n.tag == "!!str":
		return entry{word: n}, true
	case n.kind == mapNode && len(n.keys) == 1:
		e := entry{word: n.keys[0], args: n.items[0]}
		if e.args.isNull() {
			r.errs.Add(e.word.errorf("%s has no value", e.word.text).WithNote("leave out the colon for a plain %s", e.word.text))
			return e, false
		}
		return e, true
	case n.kind == mapNode && len(n.keys) > 1:
		r.errs.Add(n.keys[1].errorf("one item of the list holds two %ss, %s and %s", what, n.keys[0].text, n.keys[1].text).
			WithNote("start each %s with a dash; arguments are indented deeper or stand in braces", what))
		return entry{}, false
	case n.kind == mapNode:
		return entry{}, false // empty, or emptied by an error reported before
	}
	r.errs.Add(n.errorf("a %s is a word, word: value or word: {arguments}, not %s", what, n.describe()))
	return entry{}, false
}

// list returns the items of a list, or reports that n is none.
func (r *Reader) list(n *node, path, what string) []*node {
	if n.kind != listNode {
		r.errs.Add(n.errorf("%s must be a list of %s, not %s", path, what, n.describe()).WithNote("start each with a dash"))
		return nil
	}
	return n.items
}

func (r *Reader) blocks(n *node, path string) {
	for _, item := range r.list(n, path, "blocks") {
		b := Block{}
		if e, ok := r.entryOf(item, "block"); ok {
			b.Kind = Str{V: e.word.text, Pos: e.word.pos}
			if kind := blockNamed(e.word.text); kind == nil {
				r.unknownWord(e.word, "block", blockNames())
				b.Kind.V = ""
			} else {
				before := len(r.errs)
				b.Args = r.args(kind.Name, kind.args, e)
				if kind.Name == "maxpool2d" && b.Args["stride"].Int == 0 {
					b.Args["stride"] = Arg{Int: b.Args["kernel"].Int}
				}
				if len(r.errs) > before {
					b.Args = nil
				}
			}
		}
		// A block with an error keeps its place, without its kind or its arguments.
		r.spec.Model.Blocks = append(r.spec.Model.Blocks, b)
	}
}

func (r *Reader) unknownWord(word *node, what string, known []string) {
	d := strange(word.errorf("unknown %s %q", what, word.text), word.text)
	if d.Suggestion = suggest(word.text, known); d.Suggestion == "" {
		d = d.WithNote("known: %s", strings.Join(known, ", "))
	}
	r.errs.Add(d)
}

// args decodes the arguments of a block or loss term; every argument is in the
// result, those not written with their default and no place.
func (r *Reader) args(word string, rows []Row, e entry) map[string]Arg {
	args := map[string]Arg{}
	for i := range rows {
		args[rows[i].Name] = rows[i].defaultArg()
	}
	given := map[string]bool{} // or meant
	switch {
	case e.args == nil:
	case e.args.kind == mapNode:
		for i, key := range e.args.keys {
			if row := find(rows, key.text); row != nil {
				given[row.Name] = true
				r.argument(args, row, word+"."+row.Name, key, e.args.items[i])
			} else {
				given[r.unknownKey(key, rows, word)] = true
			}
		}
	default:
		main := mainOf(rows)
		if main == nil {
			r.noMain(word, rows, e.args)
			return args
		}
		given[main.Name] = true
		r.argument(args, main, word+"."+main.Name, e.word, e.args)
	}
	for i := range rows {
		if row := &rows[i]; row.Required && !given[row.Name] {
			r.errs.Add(e.word.errorf("%s needs %s", word, row.Name).WithNote("%s: %s", row.Name, row.Doc))
		}
	}
	return args
}

func (r *Reader) argument(args map[string]Arg, row *Row, path string, key, n *node) {
	if n.isNull() {
		r.errs.Add(key.errorf("%s has no value", path).WithNote("expected %s", row.describeType()))
		return
	}
	if row.Type == expression { // kept for the reader of the loss term
		return
	}
	if a, ok := r.arg(row, path, n); ok {
		args[row.Name] = a
	}
}

func (r *Reader) noMain(word string, rows []Row, n *node) {
	d := n.errorf("%s takes no value", word)
	if len(rows) > 0 {
		d = n.errorf("%s needs its arguments by name", word).
			WithNote("write %s: {%s: ..., ...}; known: %s", word, rows[0].Name, strings.Join(namesOf(rows), ", "))
	}
	r.errs.Add(d)
}

func (r *Reader) losses(n *node, path string) {
	r.spec.Loss = nil
	items := r.list(n, path, "loss terms")
	if n.kind == listNode && len(items) == 0 {
		r.errs.Add(n.errorf("the loss needs at least one term").WithNote("known: %s", strings.Join(lossNames(), ", ")))
	}
	for _, item := range items {
		e, ok := r.entryOf(item, "loss term")
		if !ok {
			continue
		}
		kind := lossNamed(e.word.text)
		if kind == nil {
			r.unknownWord(e.word, "loss term", lossNames())
			continue
		}
		args := r.args(kind.name, kind.args, e)
		l := Loss{Kind: Str{V: kind.name, Pos: e.word.pos}, Weight: Float{V: args["weight"].Float, Pos: args["weight"].Pos}}
		if kind.name == "equation" {
			l.Name = Str{V: args["name"].Str, Pos: args["name"].Pos}
			if e.args == nil || e.args.kind != mapNode {
				continue
			}
			value := e.args.get("value")
			if value == nil || value.isNull() {
				continue // reported with the arguments
			}
			eq := r.equation(l.Name, "equation.value", value)
			if eq == nil {
				continue
			}
			l.Equation = *eq
		}
		r.spec.Loss = append(r.spec.Loss, l)
	}
}

// entries walks over a map of names, reporting malformed names and null values.
func (r *Reader) entries(n *node, path, what string, each func(name Str, key, value *node)) {
	if n.kind != mapNode {
		r.errs.Add(n.errorf("%s must be a map of names, not %s", path, n.describe()))
		return
	}
	for i, key := range n.keys {
		name := Str{V: key.text, Pos: key.pos}
		r.keys = append(r.keys, keyAt{join(path, name.V), name.Pos})
		if d, ok := checkName(key, what); !ok {
			r.errs.Add(d)
		}
		if value := n.items[i]; value.isNull() {
			r.errs.Add(key.errorf("%s.%s has no value", path, key.text))
		} else {
			each(name, key, value)
		}
	}
}

func (r *Reader) sizes(n *node, path string) {
	row := Row{Type: Whole, In: Between(1, maxExtent)}
	r.entries(n, path, "a size", func(name Str, _, value *node) {
		s := Size{Name: name}
		if a, ok := r.arg(&row, path+"."+name.V, value); ok {
			s.V = Int{V: a.Int, Pos: a.Pos}
		}
		r.spec.Model.Sizes = append(r.spec.Model.Sizes, s)
	})
}

func (r *Reader) numbers(n *node, path string) {
	row := Row{Type: Real}
	r.entries(n, path, "a number", func(name Str, _, value *node) {
		s := Number{Name: name}
		if a, ok := r.arg(&row, path+"."+name.V, value); ok {
			s.V = Float{V: a.Float, Pos: a.Pos}
		}
		r.spec.Model.Numbers = append(r.spec.Model.Numbers, s)
	})
}

func (r *Reader) params(n *node, path string) {
	r.entries(n, path, "a parameter", func(name Str, key, value *node) {
		r.param(name, path+"."+name.V, key, value)
	})
}

func (r *Reader) param(name Str, path string, key, n *node) {
	p := Param{Name: name, Shape: []Str{{}}} // one unknown extent, until the shape is read
	defer func() { r.spec.Model.Params = append(r.spec.Model.Params, p) }()
	if n.kind == listNode { // Wv: [d, k] for Wv: {shape: [d, k]}
		n = &node{kind: mapNode, pos: n.pos, src: n.src, keys: []*node{{text: "shape", pos: key.pos, src: key.src}}, items: []*node{n}}
	}
	if n.kind != mapNode {
		r.errs.Add(n.errorf("%s must be a map such as {shape: [d, k]}, not %s", path, n.describe()))
		return
	}
	args := r.args(path, paramScalars(), entry{word: key, args: withoutKey(n, "shape")})
	p.Init = Str{V: args["init"].Str, Pos: args["init"].Pos}
	p.Scale = Float{V: args["scale"].Float, Pos: args["scale"].Pos}
	p.FanIn = Str{V: args["fan_in"].Str, Pos: args["fan_in"].Pos}
	shape := n.get("shape")
	switch {
	case shape == nil:
		r.errs.Add(key.errorf("%s needs shape", path).WithNote("%s", find(paramRows, "shape").Doc))
	case shape.kind != listNode:
		r.errs.Add(shape.errorf("%s.shape must be a list of extents, not %s", path, shape.describe()).WithNote("write [%s]", strings.Trim(shape.text, "()")))
	default:
		row := Row{Type: namedExtent}
		p.Shape = nil
		for i, item := range shape.items {
			e := Str{Pos: item.pos}
			if a, ok := r.arg(&row, fmt.Sprintf("%s.shape[%d]", path, i), item); ok {
				e.V = a.Str
			}
			p.Shape = append(p.Shape, e)
		}
	}
}

// paramScalars are the rows of a parameter other than its shape.
func paramScalars() []Row {
	var rows []Row
	for _, r := range paramRows {
		if r.Type != extentList {
			rows = append(rows, r)
		}
	}
	return rows
}

func withoutKey(n *node, key string) *node {
	out := *n
	out.keys, out.items = nil, nil
	for i, k := range n.keys {
		if k.text != key {
			out.keys, out.items = append(out.keys, k), append(out.items, n.items[i])
		}
	}
	return &out
}

func (r *Reader) let(n *node, path string) {
	r.entries(n, path, "an equation", func(name Str, _, value *node) {
		if eq := r.equation(name, path+"."+name.V, value); eq != nil {
			r.spec.Model.Let = append(r.spec.Model.Let, *eq)
		} else {
			// Users of the name are not to be reported as well.
			r.spec.Model.Let = append(r.spec.Model.Let, Equation{Name: name})
		}
	})
}
