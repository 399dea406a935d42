package language

import (
	"strings"

	"gopkg.in/yaml.v3"
)

// An entry of a list of blocks or loss terms: a word and what it is given.
type entry struct {
	word *Node
	args *Node // nil for a plain word
}

// entryOf splits one item of a list; what names the kind of list in messages.
func (r *Reader) entryOf(n *Node, what string) (entry, bool) {
	switch {
	case n.kind == scalarNode && n.tag == "!!str":
		return entry{word: n}, true
	case n.kind == mapNode && len(n.keys) == 1:
		e := entry{word: n.keys[0], args: n.items[0]}
		if e.args.isNull() {
			r.errs.Add(e.word.Errorf("%s has no value", e.word.text).WithNote("leave out the colon for a plain %s", e.word.text))
			return e, false
		}
		return e, true
	case n.kind == mapNode && len(n.keys) > 1:
		r.errs.Add(n.keys[1].Errorf("one item of the list holds two %ss, %s and %s", what, n.keys[0].text, n.keys[1].text).
			WithNote("start each %s with a dash; arguments are indented deeper or stand in braces", what))
		return entry{}, false
	case n.kind == mapNode:
		return entry{}, false // empty, or emptied by an error reported before
	}
	r.errs.Add(n.Errorf("a %s is a word, word: value or word: {arguments}, not %s", what, n.Describe()))
	return entry{}, false
}

// list returns the items of a list, or reports that n is none.
func (r *Reader) list(n *Node, path, what string) []*Node {
	if n.kind != listNode {
		r.errs.Add(n.Errorf("%s must be a list of %s, not %s", path, what, n.Describe()).WithNote("start each with a dash"))
		return nil
	}
	return n.items
}

var blocksForm = Own{
	Says:   "a list of blocks",
	Schema: func() *object { return listOf(ref("block")) },
	Read:   readBlocks,
	write: func(s *Spec) *yaml.Node {
		return listOfNodes(0, s.Model.Blocks, func(b Block) *yaml.Node {
			return entryNode(b.Kind.V, find(Blocks, b.Kind.V).args, b.Args)
		})
	},
}

func readBlocks(r *Reader, path string, _, n *Node, _ any) {
	for _, item := range r.list(n, path, "blocks") {
		b := Block{}
		if e, ok := r.entryOf(item, "block"); ok {
			b.Kind = Str{V: e.word.text, Pos: e.word.pos}
			if kind := find(Blocks, e.word.text); kind == nil {
				r.unknownWord(e.word, "block", wordsOf(Blocks))
				b.Kind.V = ""
			} else {
				before := len(r.errs)
				b.Args = r.args(kind.Name, kind.args, e)
				if kind.Name == "maxpool2d" && b.Args["stride"].Int() == 0 {
					b.Args["stride"] = Arg{V: b.Args["kernel"].Int()}
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

func (r *Reader) unknownWord(word *Node, what string, known []string) {
	d := strange(word.Errorf("unknown %s %q", what, word.text), word.text)
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
			r.errs.Add(e.word.Errorf("%s needs %s", word, row.Name).WithNote("%s: %s", row.Name, row.Doc))
		}
	}
	return args
}

func (r *Reader) argument(args map[string]Arg, row *Row, path string, key, n *Node) {
	if n.isNull() {
		r.errs.Add(key.Errorf("%s has no value", path).WithNote("expected %s", row.describeType()))
		return
	}
	if row.Type == expression { // kept for the reader of the loss term
		return
	}
	if a, ok := r.arg(row, path, n); ok {
		args[row.Name] = a
	}
}

func (r *Reader) noMain(word string, rows []Row, n *Node) {
	d := n.Errorf("%s takes no value", word)
	if len(rows) > 0 {
		d = n.Errorf("%s needs its arguments by name", word).
			WithNote("write %s: {%s: ..., ...}; known: %s", word, rows[0].Name, strings.Join(wordsOf(rows), ", "))
	}
	r.errs.Add(d)
}

var lossForm = Own{
	Says: "a list of loss terms",
	Schema: func() *object {
		list := listOf(ref("loss"))
		list.set("minItems", 1)
		return list
	},
	Read:  readLosses,
	write: func(s *Spec) *yaml.Node { return listOfNodes(0, s.Loss, lossNode) },
}

func lossNode(l Loss) *yaml.Node {
	n := entryNode(l.Kind.V, find(lossKinds, l.Kind.V).args, map[string]Arg{
		"weight": {V: l.Weight.V}, "name": {V: l.Name.V}, "value": {V: l.Equation.Text.V},
	})
	if l.Kind.V == "equation" { // block style: the value may have several lines
		n.Content[1].Style = 0
	}
	return n
}

func readLosses(r *Reader, path string, _, n *Node, _ any) {
	r.spec.Loss = nil
	items := r.list(n, path, "loss terms")
	if n.IsList() && len(items) == 0 {
		r.errs.Add(n.Errorf("the loss needs at least one term").WithNote("known: %s", strings.Join(wordsOf(lossKinds), ", ")))
	}
	for _, item := range items {
		e, ok := r.entryOf(item, "loss term")
		if !ok {
			continue
		}
		kind := find(lossKinds, e.word.text)
		if kind == nil {
			r.unknownWord(e.word, "loss term", wordsOf(lossKinds))
			continue
		}
		args := r.args(kind.Name, kind.args, e)
		l := Loss{Kind: Str{V: kind.Name, Pos: e.word.pos}}
		l.Weight.set(args["weight"])
		if kind.Name == "equation" {
			l.Name.set(args["name"])
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
func (r *Reader) entries(n *Node, path, what string, each func(name Str, key, value *Node)) {
	if n.kind != mapNode {
		r.errs.Add(n.Errorf("%s must be a map of names, not %s", path, n.Describe()))
		return
	}
	for i, key := range n.keys {
		name := Str{V: key.text, Pos: key.pos}
		r.keys = append(r.keys, keyAt{join(path, name.V), name.Pos})
		if d, ok := checkName(key, what); !ok {
			r.errs.Add(d)
		}
		if value := n.items[i]; value.isNull() {
			r.errs.Add(key.Errorf("%s.%s has no value", path, key.text))
		} else {
			each(name, key, value)
		}
	}
}

// namesForm is a map of names, which are of what; the model keeps their values in the
// list that of gives.
func namesForm[T any](what string, style yaml.Style, of func(*Model) *[]T, schema func() *object,
	read func(r *Reader, name Str, path string, key, value *Node) T, write func(T) (string, *yaml.Node)) Own {
	return Own{
		Says:   "a map",
		Schema: func() *object { return mapOf(schema()) },
		Read: func(r *Reader, path string, _, n *Node, _ any) {
			list := of(&r.spec.Model)
			r.entries(n, path, what, func(name Str, key, value *Node) {
				*list = append(*list, read(r, name, path+"."+name.V, key, value))
			})
		},
		write: func(s *Spec) *yaml.Node {
			m := mapping(style)
			for _, entry := range *of(&s.Model) {
				name, value := write(entry)
				put(m, name, value)
			}
			return m
		},
	}
}

// settingsForm is a map of names and single values of one kind.
func settingsForm[T any](what string, row Row, of func(*Model) *[]Setting[T]) Own {
	return namesForm(what, yaml.FlowStyle, of, func() *object { return types[row.Type].schema(&row) },
		func(r *Reader, name Str, path string, _, n *Node) Setting[T] {
			s := Setting[T]{Name: name}
			a, _ := r.arg(&row, path, n)
			s.V.set(a)
			return s
		},
		func(s Setting[T]) (string, *yaml.Node) { return s.Name.V, valueNode(s.V.value()) })
}

var sizesForm = settingsForm("a size", Row{Type: Whole, In: Between(1, maxExtent)}, func(m *Model) *[]Size { return &m.Sizes })

var numbersForm = settingsForm("a number", Row{Type: Real}, func(m *Model) *[]Number { return &m.Numbers })

var paramsForm = namesForm("a parameter", 0, func(m *Model) *[]Param { return &m.Params },
	func() *object { return newObject("oneOf", []*object{ref("param"), listOf(extentSchema())}) },
	(*Reader).param, func(p Param) (string, *yaml.Node) { return p.Name.V, paramNode(p) })

func (r *Reader) param(name Str, path string, key, n *Node) Param {
	p := Param{Name: name, Shape: []Str{{}}} // one unknown extent, until the shape is read
	if n.kind == listNode {                  // Wv: [d, k] for Wv: {shape: [d, k]}
		n = &Node{kind: mapNode, pos: n.pos, src: n.src, keys: []*Node{{text: "shape", pos: key.pos, src: key.src}}, items: []*Node{n}}
	}
	if n.kind != mapNode {
		r.errs.Add(n.Errorf("%s must be a map such as {shape: [d, k]}, not %s", path, n.Describe()))
		return p
	}
	args := r.args(path, paramScalars(), entry{word: key, args: withoutKey(n, "shape")})
	p.Init.set(args["init"])
	p.Scale.set(args["scale"])
	p.FanIn.set(args["fan_in"])
	shape := n.get("shape")
	switch {
	case shape == nil:
		r.errs.Add(key.Errorf("%s needs shape", path).WithNote("%s", find(paramRows, "shape").Doc))
	case shape.kind != listNode:
		r.errs.Add(shape.Errorf("%s.shape must be a list of extents, not %s", path, shape.Describe()).WithNote("write [%s]", strings.Trim(shape.text, "()")))
	default:
		row := Row{Type: namedExtent}
		p.Shape = nil
		for i, item := range shape.items {
			e := Str{Pos: item.pos}
			if a, ok := r.arg(&row, entryPath(path+".shape", i, item), item); ok {
				e.V = a.Str()
			}
			p.Shape = append(p.Shape, e)
		}
	}
	return p
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

func withoutKey(n *Node, key string) *Node {
	out := *n
	out.keys, out.items = nil, nil
	for i, k := range n.keys {
		if k.text != key {
			out.keys, out.items = append(out.keys, k), append(out.items, n.items[i])
		}
	}
	return &out
}

var letForm = namesForm("an equation", 0, func(m *Model) *[]Equation { return &m.Let }, expressionSchema,
	func(r *Reader, name Str, path string, _, n *Node) Equation {
		if eq := r.equation(name, path, n); eq != nil {
			return *eq
		}
		return Equation{Name: name} // users of the name are not to be reported as well
	},
	func(eq Equation) (string, *yaml.Node) { return eq.Name.V, textNode(eq.Text.V) })

// updateForm is weights.update; the equations of the loss are read with their term.
var updateForm = Own{
	Says:   "an equation",
	Schema: expressionSchema,
	Read: func(r *Reader, path string, key, n *Node, _ any) {
		r.spec.Weights.Update = r.equation(Str{V: key.Raw(), Pos: key.Pos()}, path, n)
	},
	write: func(s *Spec) *yaml.Node { return textNode(s.Weights.Update.Text.V) },
}
