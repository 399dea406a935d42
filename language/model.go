// The sections model and loss: blocks, terms, sizes, numbers, parameters and functions.

package language

import (
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/miplc/miplc/language/schema"
)

var blocksType = schema.CustomType{
	Noun:   "a list of blocks",
	Schema: schema.ListOf(schema.Ref("block")),
	Read:   readBlocks,
	Write: func(from any) *yaml.Node {
		return schema.ListNode(0, *from.(*[]Block), func(b Block) *yaml.Node {
			return schema.EntryNode(b.Kind.V, schema.Find(Blocks, b.Kind.V).args, b.Args)
		})
	},
}

func readBlocks(r *schema.Reader, path string, _, n *schema.Node, to any) {
	list := to.(*[]Block)
	for _, item := range r.List(n, path, "blocks") {
		// A block with an error keeps its place, without its kind or its arguments.
		*list = append(*list, readBlock(r, item))
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

var lossType = schema.CustomType{
	Noun:   "a list of loss terms",
	Schema: schema.Object{"type": "array", "items": schema.Ref("loss"), "minItems": 1},
	Read:   readLosses,
	Write:  func(from any) *yaml.Node { return schema.ListNode(0, *from.(*[]Loss), lossNode) },
}

func lossNode(l Loss) *yaml.Node {
	n := schema.EntryNode(l.Kind.V, l.Row().args, map[string]schema.Arg{
		"weight": {V: l.Weight.V}, "name": {V: l.Name.V}, "value": {V: l.Equation.Text.V},
	})
	if l.Kind.V == "equation" { // block style: the value may have several lines
		n.Content[1].Style = 0
	}
	return n
}

func readLosses(r *schema.Reader, path string, _, n *schema.Node, to any) {
	list := to.(*[]Loss)
	*list = nil
	items := r.List(n, path, "loss terms")
	if n.IsList() && len(items) == 0 {
		r.AddFault(n.Errorf("the loss needs at least one term").WithNote("known: %s", strings.Join(schema.Words(LossTerms),
			", ")))
	}
	for _, item := range items {
		if l, ok := readLoss(r, item); ok {
			*list = append(*list, l)
		}
	}
}

func readLoss(r *schema.Reader, item *schema.Node) (l Loss, ok bool) {
	e, ok := r.ReadEntry(item, "loss term")
	if !ok {
		return l, false
	}
	kind := schema.Find(LossTerms, e.Word.Raw())
	if kind == nil {
		r.UnknownWord(e.Word, "loss term", schema.Words(LossTerms))
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

// namesType describes a key whose value is a map from names to values, such as params. Messages
// call a name by the noun what.
func namesType[T any](what string, style yaml.Style, value schema.Object,
	read func(r *schema.Reader, name schema.Str, path string, n *schema.Node) T, write func(T) (string,
		*yaml.Node)) schema.CustomType {
	return schema.CustomType{
		Noun:   "a map",
		Schema: schema.MapSchema(value),
		Read: func(r *schema.Reader, path string, _, n *schema.Node, to any) {
			readNames(r, what, path, n, to.(*[]T), read)
		},
		Write: func(from any) *yaml.Node {
			m := schema.MapNode(style)
			for _, entry := range *from.(*[]T) {
				name, value := write(entry)
				schema.Put(m, name, value)
			}
			return m
		},
	}
}

// readNames reads a map from names to values, as namesType describes it, and appends the values to entries.
func readNames[T any](r *schema.Reader, what, path string, n *schema.Node, entries *[]T,
	read func(r *schema.Reader, name schema.Str, path string, n *schema.Node) T) {
	check := func(key *schema.Node) {
		if text, why := refusedName(key.Raw(), what); text != "" {
			r.AddFault(key.Errorf("%s", text).WithNote("%s", why))
		}
	}
	r.EachName(n, path, check, func(name schema.Str, value *schema.Node) {
		*entries = append(*entries, read(r, name, path+"."+name.V, value))
	})
}

var sizeRow = schema.Row{Type: schema.Whole, In: schema.Closed(1, schema.MaxSize)}

var sizesType = namesType("a size", yaml.FlowStyle, sizeRow.Schema(),
	func(r *schema.Reader, name schema.Str, path string, n *schema.Node) Size {
		s := Size{Name: name}
		a, _ := r.Value(&sizeRow, path, n)
		s.V.Assign(a)
		return s
	},
	func(s Size) (string, *yaml.Node) { return s.Name.V, schema.ValueNode(s.V.V) })

var numberRow = schema.Row{Type: schema.Real}

var numbersType = namesType("a number", yaml.FlowStyle,
	schema.Object{"anyOf": []schema.Object{numberRow.Schema(), schema.ListOf(numberRow.Schema())}},
	readNumber, func(n Number) (string, *yaml.Node) {
		if n.V.V.List {
			return n.Name.V, schema.ValueNode(n.V.V.Values)
		}
		return n.Name.V, schema.ValueNode(n.V.V.Values[0])
	})

func readNumber(r *schema.Reader, name schema.Str, path string, n *schema.Node) Number {
	number := Number{Name: name}
	number.V.Pos = n.Pos()
	items := []*schema.Node{n}
	if number.V.V.List = n.IsList(); number.V.V.List {
		if items = n.Items(); len(items) == 0 {
			r.AddFault(n.Errorf("%s is empty", path).WithNote("give it at least one number"))
		}
	}
	for i, item := range items {
		itemPath := path
		if number.V.V.List {
			itemPath = schema.EntryPath(path, i, item)
		}
		a, _ := r.Value(&numberRow, itemPath, item)
		number.V.V.Values = append(number.V.V.Values, a.Float())
	}
	return number
}

var paramsType = namesType("a parameter", 0,
	schema.Object{"oneOf": []schema.Object{schema.Ref("param"), schema.ListOf(schema.SizeSchema)}},
	readParam, func(p Param) (string, *yaml.Node) { return p.Name.V, schema.SectionNode(yaml.FlowStyle, paramRows, &p) })

func readParam(r *schema.Reader, name schema.Str, path string, n *schema.Node) Param {
	p := Param{Name: name}
	if n.IsMap() || n.IsList() { // Wv: [d, k] for Wv: {shape: [d, k]}
		r.Section(paramRows, path, n, &p)
	} else {
		r.AddFault(n.Errorf("%s must be a map such as {shape: [d, k]}, not %s", path, n.Describe()))
	}
	if scale := n.Get("scale"); scale != nil {
		p.Scale.Pos = scale.Pos() // also of a wrong one, which was reported
	}
	if shape := n.Get("shape"); !n.IsList() && (shape == nil || !shape.IsList()) {
		p.Shape = []schema.Str{{}} // one unknown size
	}
	return p
}

var letType = namesType("an equation", 0, schema.ExpressionSchema,
	func(r *schema.Reader, name schema.Str, path string, n *schema.Node) Equation {
		if eq := readEquation(r, name, path, n); eq != nil {
			return *eq
		}
		return Equation{Name: name} // uses of the name are not reported as well
	},
	func(eq Equation) (string, *yaml.Node) { return eq.Name.V, schema.TextNode(eq.Text.V) })

var functionsType = namesType("a function", 0,
	schema.Ref("function"), readFunction, func(f UserFunction) (string, *yaml.Node) {
		return f.Name.V, schema.SectionNode(0, functionRows, &f)
	})

func readFunction(r *schema.Reader, name schema.Str, path string, n *schema.Node) UserFunction {
	f := UserFunction{Name: name}
	if !n.IsMap() {
		r.AddFault(n.Errorf("%s must be a map such as {args: [x], value: x * x}, not %s", path, n.Describe()))
		return f
	}
	r.Section(functionRows, path, n, &f)
	if f.Value != nil {
		f.Value.Name = name
	}
	return f
}

// equationType is a key with an equation; the equations of the loss are read with their term.
var equationType = schema.CustomType{
	Noun:   "an equation",
	Schema: schema.ExpressionSchema,
	Read: func(r *schema.Reader, path string, key, n *schema.Node, to any) {
		*to.(**Equation) = readEquation(r, schema.Str{V: key.Raw(), Pos: key.Pos()}, path, n)
	},
	Write: func(from any) *yaml.Node { return schema.TextNode((*from.(**Equation)).Text.V) },
}
