package language

import (
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/miplc/miplc/language/schema"
)

var blocksForm = schema.Custom{
	Says:   "a list of blocks",
	Schema: func() *schema.Object { return schema.ListOf(schema.Ref("block")) },
	Read:   readBlocks,
	Write: func(of any) *yaml.Node {
		return schema.ListNode(0, of.(*Spec).Model.Blocks, func(b Block) *yaml.Node {
			return schema.EntryNode(b.Kind.V, schema.Find(Blocks, b.Kind.V).args, b.Args)
		})
	},
}

func readBlocks(r *schema.Reader, path string, _, n *schema.Node, to any) {
	s := to.(*Spec)
	for _, item := range r.List(n, path, "blocks") {
		// A block with an error keeps its place, without its kind or its arguments.
		s.Model.Blocks = append(s.Model.Blocks, readBlock(r, item))
	}
}

func readBlock(r *schema.Reader, item *schema.Node) Block {
	e, ok := r.ReadEntry(item, "block")
	if !ok {
		return Block{}
	}
	b := Block{Kind: schema.Str{V: e.Word.Raw(), Pos: e.Word.Pos()}}
	kind := schema.Find(Blocks, e.Word.Raw())
	if kind == nil {
		r.UnknownWord(e.Word, "block", schema.Words(Blocks))
		b.Kind.V = ""
		return b
	}
	before := len(r.Faults())
	b.Args = r.Args(kind.Name, kind.args, e)
	if kind.Name == "maxpool2d" && b.Args["stride"].Int() == 0 {
		b.Args["stride"] = schema.Arg{V: b.Args["kernel"].Int()}
	}
	if len(r.Faults()) > before {
		b.Args = nil
	}
	return b
}

var lossForm = schema.Custom{
	Says: "a list of loss terms",
	Schema: func() *schema.Object {
		list := schema.ListOf(schema.Ref("loss"))
		list.Set("minItems", 1)
		return list
	},
	Read:  readLosses,
	Write: func(of any) *yaml.Node { return schema.ListNode(0, of.(*Spec).Loss, lossNode) },
}

func lossNode(l Loss) *yaml.Node {
	n := schema.EntryNode(l.Kind.V, schema.Find(lossKinds, l.Kind.V).args, map[string]schema.Arg{
		"weight": {V: l.Weight.V}, "name": {V: l.Name.V}, "value": {V: l.Equation.Text.V},
	})
	if l.Kind.V == "equation" { // block style: the value may have several lines
		n.Content[1].Style = 0
	}
	return n
}

func readLosses(r *schema.Reader, path string, _, n *schema.Node, to any) {
	s := to.(*Spec)
	s.Loss = nil
	items := r.List(n, path, "loss terms")
	if n.IsList() && len(items) == 0 {
		r.Fault(n.Errorf("the loss needs at least one term").WithNote("known: %s", strings.Join(schema.Words(lossKinds), ", ")))
	}
	for _, item := range items {
		if l, ok := readLoss(r, item); ok {
			s.Loss = append(s.Loss, l)
		}
	}
}

func readLoss(r *schema.Reader, item *schema.Node) (l Loss, ok bool) {
	e, ok := r.ReadEntry(item, "loss term")
	if !ok {
		return l, false
	}
	kind := schema.Find(lossKinds, e.Word.Raw())
	if kind == nil {
		r.UnknownWord(e.Word, "loss term", schema.Words(lossKinds))
		return l, false
	}
	args := r.Args(kind.Name, kind.args, e)
	l.Kind = schema.Str{V: kind.Name, Pos: e.Word.Pos()}
	l.Weight.Assign(args["weight"])
	if kind.Name != "equation" {
		return l, true
	}
	l.Name.Assign(args["name"])
	if e.Args == nil || !e.Args.IsMap() {
		return l, false
	}
	value := e.Args.Get("value")
	if value == nil || value.IsNull() {
		return l, false // reported with the arguments
	}
	eq := readEquation(r, l.Name, "equation.value", value)
	if eq == nil {
		return l, false
	}
	l.Equation = *eq
	return l, true
}

// namesForm is a map of names; what is their noun. list returns the list in which
// the model keeps their values.
func namesForm[T any](what string, style yaml.Style, list func(*Model) *[]T, value func() *schema.Object,
	read func(r *schema.Reader, name schema.Str, path string, key, value *schema.Node) T, write func(T) (string, *yaml.Node)) schema.Custom {
	return schema.Custom{
		Says:   "a map",
		Schema: func() *schema.Object { return schema.MapOf(value()) },
		Read: func(r *schema.Reader, path string, _, n *schema.Node, to any) {
			entries := list(&to.(*Spec).Model)
			check := func(key *schema.Node) {
				if d, ok := checkName(key, what); !ok {
					r.Fault(d)
				}
			}
			r.Names(n, path, check, func(name schema.Str, key, value *schema.Node) {
				*entries = append(*entries, read(r, name, path+"."+name.V, key, value))
			})
		},
		Write: func(of any) *yaml.Node {
			m := schema.MapNode(style)
			for _, entry := range *list(&of.(*Spec).Model) {
				name, value := write(entry)
				schema.Put(m, name, value)
			}
			return m
		},
	}
}

// settingsForm is a map of names and single values of one type.
func settingsForm[T any](what string, row schema.Row, list func(*Model) *[]Setting[T]) schema.Custom {
	return namesForm(what, yaml.FlowStyle, list, row.Schema,
		func(r *schema.Reader, name schema.Str, path string, _, n *schema.Node) Setting[T] {
			s := Setting[T]{Name: name}
			a, _ := r.Value(&row, path, n)
			s.V.Assign(a)
			return s
		},
		func(s Setting[T]) (string, *yaml.Node) { return s.Name.V, schema.ValueNode(s.V.V) })
}

var sizesForm = settingsForm("a size", schema.Row{Type: schema.Whole, In: schema.Between(1, schema.MaxExtent)}, func(m *Model) *[]Size { return &m.Sizes })

var numbersForm = settingsForm("a number", schema.Row{Type: schema.Real}, func(m *Model) *[]Number { return &m.Numbers })

var paramsForm = namesForm("a parameter", 0, func(m *Model) *[]Param { return &m.Params },
	func() *schema.Object {
		return schema.NewObject("oneOf", []*schema.Object{schema.Ref("param"), schema.ListOf(schema.ExtentSchema())})
	},
	readParam, func(p Param) (string, *yaml.Node) { return p.Name.V, paramNode(p) })

func readParam(r *schema.Reader, name schema.Str, path string, key, n *schema.Node) Param {
	p := Param{Name: name, Shape: []schema.Str{{}}} // one unknown extent, until the shape is read
	if n.IsList() {                                 // Wv: [d, k] for Wv: {shape: [d, k]}
		n = n.MapOf("shape", key)
	}
	if !n.IsMap() {
		r.Fault(n.Errorf("%s must be a map such as {shape: [d, k]}, not %s", path, n.Describe()))
		return p
	}
	args := r.Args(path, paramScalars(), schema.Entry{Word: key, Args: n.WithoutKey("shape")})
	p.Init.Assign(args["init"])
	p.Scale.Assign(args["scale"])
	p.FanIn.Assign(args["fan_in"])
	switch shape := n.Get("shape"); {
	case shape == nil:
		r.Fault(key.Errorf("%s needs shape", path).WithNote("%s", schema.Find(paramRows, "shape").Doc))
	case !shape.IsList():
		r.Fault(shape.Errorf("%s.shape must be a list of extents, not %s", path, shape.Describe()).WithNote("write [%s]", strings.Trim(shape.Raw(), "()")))
	default:
		row := schema.Row{Type: schema.Extent}
		p.Shape = nil
		for i, item := range shape.Items() {
			e := schema.Str{Pos: item.Pos()}
			if a, ok := r.Value(&row, schema.EntryPath(path+".shape", i, item), item); ok {
				e.V = a.Str()
			}
			p.Shape = append(p.Shape, e)
		}
	}
	return p
}

// paramScalars are the rows of a parameter other than its shape.
func paramScalars() []schema.Row {
	var rows []schema.Row
	for _, r := range paramRows {
		if r.Type != schema.ExtentList {
			rows = append(rows, r)
		}
	}
	return rows
}

func paramNode(p Param) *yaml.Node {
	m := schema.MapNode(yaml.FlowStyle)
	schema.Put(m, "shape", schema.ListNode(yaml.FlowStyle, p.Shape, func(e schema.Str) *yaml.Node { return extentNode(e.V) }))
	schema.Put(m, "init", schema.TextNode(p.Init.V))
	if p.Scale.V != 0 {
		schema.Put(m, "scale", schema.FloatNode(p.Scale.V))
	}
	if p.FanIn.V != "" {
		schema.Put(m, "fan_in", extentNode(p.FanIn.V))
	}
	return m
}

func extentNode(e string) *yaml.Node {
	if n, err := strconv.Atoi(e); err == nil {
		return schema.IntNode(n)
	}
	return schema.TextNode(e)
}

var letForm = namesForm("an equation", 0, func(m *Model) *[]Equation { return &m.Let }, schema.ExpressionSchema,
	func(r *schema.Reader, name schema.Str, path string, _, n *schema.Node) Equation {
		if eq := readEquation(r, name, path, n); eq != nil {
			return *eq
		}
		return Equation{Name: name} // uses of the name are not reported as well
	},
	func(eq Equation) (string, *yaml.Node) { return eq.Name.V, schema.TextNode(eq.Text.V) })

// updateForm is weights.update; the equations of the loss are read with their term.
var updateForm = schema.Custom{
	Says:   "an equation",
	Schema: schema.ExpressionSchema,
	Read: func(r *schema.Reader, path string, key, n *schema.Node, to any) {
		to.(*Spec).Weights.Update = readEquation(r, schema.Str{V: key.Raw(), Pos: key.Pos()}, path, n)
	},
	Write: func(of any) *yaml.Node { return schema.TextNode(of.(*Spec).Weights.Update.Text.V) },
}
