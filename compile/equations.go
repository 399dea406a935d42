// Lowering of equations and parameters of a spec.

package compile

import (
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strconv"
	"strings"

	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/language/schema"
)

// equations declares the parameters of the spec and lowers its let lines. A line with an error is reported once; lines
// that use it are skipped.
func (l *lowerer) equations() {
	extents := l.extents()
	for name, v := range extents {
		l.constants[name] = float64(v)
	}
	for _, n := range l.spec.Model.Numbers {
		if n.V.V.List {
			l.env[n.Name.V] = l.b.At(n.Name.Pos).Const(static([]int{len(n.V.V.Values)}), n.V.V.Values...)
		} else {
			l.constants[n.Name.V] = n.V.V.Values[0]
		}
	}
	for i := range l.spec.Model.Functions {
		l.functions[l.spec.Model.Functions[i].Name.V] = &l.spec.Model.Functions[i]
	}
	for i := range l.spec.Model.Params {
		l.declare(&l.spec.Model.Params[i], extents)
	}
	for i := range l.spec.Model.Let {
		eq := &l.spec.Model.Let[i]
		l.b.Label(eq.Name.V)
		if n := l.equation(eq); n != nil {
			l.define(eq.Name.V, n)
		} else {
			l.markUnknown(eq.Name.V)
		}
	}
}

// extents returns the sizes that parameter shapes and equations may use by name.
func (l *lowerer) extents() map[string]int {
	e := map[string]int{}
	if !l.reported.names["k"] {
		e["d"], e["k"] = ndarray.Size(l.prog.Signature.Instance), l.prog.Signature.Classes
	}
	if h := l.env["H"]; h != nil {
		e["h"] = ndarray.Size(h.Shape[1:])
	}
	for _, s := range l.spec.Model.Sizes {
		e[s.Name.V] = s.V.V
	}
	return e
}

func (l *lowerer) declare(p *language.Param, extents map[string]int) {
	extent := func(s schema.Str) int { // 0: not known
		if n, err := strconv.Atoi(s.V); err == nil {
			return n
		}
		return extents[s.V]
	}
	taken := ""
	if slices.Contains(reserved, p.Name.V) {
		taken = "the graphs of a model have an input or output %s"
	} else if l.paramNodes[p.Name.V] != nil {
		taken = "the blocks have a parameter %s already"
	}
	if taken != "" {
		l.errs.Add(diag.Errorf(p.Name.Pos, taken, p.Name.V).WithNote("give this parameter another name"))
		l.markUnknown(p.Name.V)
		return
	}
	shape := make([]int, len(p.Shape))
	for i, s := range p.Shape {
		if shape[i] = extent(s); shape[i] == 0 {
			l.markUnknown(p.Name.V)
			return
		}
	}
	fan := 1
	if p.FanIn.V != "" {
		fan = extent(p.FanIn)
	} else if len(shape) > 0 {
		fan = shape[0]
	}
	init, ok := lowering(l, map[string]Init{
		"zeros": {Kind: "constant", Scale: 0}, "ones": {Kind: "constant", Scale: 1}, "fan_in": fanIn(max(fan, 1)),
		"normal": {"normal", p.Scale.V}, "uniform": {"uniform", p.Scale.V}, "constant": {"constant", p.Scale.V},
	}, p.Init)
	if !ok {
		l.markUnknown(p.Name.V)
		return
	}
	l.b.At(p.Name.Pos)
	n := l.param(p.Name.V, init, shape...)
	if l.paramCount > maxParams { // reported
		l.markUnknown(p.Name.V)
		return
	}
	l.env[p.Name.V] = n
}

// equation lowers one expression. It returns nil after an error, which it reports, or if a name in it
// has no value because its definition failed.
func (l *lowerer) equation(eq *language.Equation) *graph.Node {
	if eq.Expr == nil || l.oversize(eq.Text.Pos) {
		return nil
	}
	e := &expression{lowerer: l, eq: eq}
	n, err := e.node(eq.Expr)
	switch {
	case err == nil:
		return n
	case errors.Is(err, errReported):
		return nil
	}
	l.errs.AddError(eq.Text.Pos, err)
	return nil
}

// at returns a diagnostic for the bytes start to end of an equation.
func (l *lowerer) at(eq *language.Equation, start, end int, text string) diag.Diagnostic {
	d := diag.Diagnostic{Pos: eq.Text.Pos, Text: text, Width: max(end-start, 1)}
	if eq.At != nil {
		d.Pos = eq.At(start)
	}
	if eq.LineAt != nil {
		d.Line = eq.LineAt(start)
	}
	return d
}

// errReported is the error for the use of a name whose definition has a reported error.
var errReported = errors.New("uses a definition with an error")

// expression lowers the syntax tree of one equation.
type expression struct {
	*lowerer
	eq *language.Equation
	// locals are the arguments and definitions of a function of the spec; nil outside of functions.
	locals map[string]*graph.Node
	// path identifies the enclosing calls of functions of the spec. It has addresses and not positions, because all
	// calls of an equation in --set have the same position.
	path string
}

func (e *expression) errorf(x ast.Node, format string, args ...any) error {
	return e.at(e.eq, int(x.Pos())-1, int(x.End())-1, fmt.Sprintf(format, args...))
}

// place returns the position of x in the spec.
func (e *expression) place(x ast.Node) diag.Pos { return e.at(e.eq, int(x.Pos())-1, 0, "").Pos }

// apply appends a node. It reports shape errors at x.
func (e *expression) apply(x ast.Node, op graph.Op, attrs graph.Attrs, in ...*graph.Node) (*graph.Node, error) {
	e.b.At(e.place(x))
	n, err := e.b.Apply(op, attrs, in...)
	if err != nil {
		return nil, e.errorf(x, "%s: %s", written(x), strings.TrimPrefix(err.Error(), op.String()+": "))
	}
	return n, nil
}

// written returns the name of an operation as written in the equation.
func written(x ast.Node) string {
	switch x := x.(type) {
	case *ast.CallExpr:
		return x.Fun.(*ast.Ident).Name
	case *ast.BinaryExpr:
		return x.Op.String()
	}
	return "-"
}

// node lowers an expression, whose form package language has checked.
func (e *expression) node(x ast.Expr) (*graph.Node, error) {
	switch x := x.(type) {
	case *ast.ParenExpr:
		return e.node(x.X)
	case *ast.BasicLit:
		v, _ := language.Constant(x)
		return e.b.Scalar(v), nil
	case *ast.Ident:
		return e.name(x)
	case *ast.UnaryExpr:
		return e.unary(x)
	case *ast.BinaryExpr:
		return e.binary(x)
	case *ast.CallExpr:
		return e.call(x)
	}
	return nil, e.errorf(x, "bug: package language accepted an expression that is not part of the language")
}

func (e *expression) name(x *ast.Ident) (*graph.Node, error) {
	if n := e.locals[x.Name]; n != nil {
		return n, nil
	}
	if n := e.env[x.Name]; n != nil {
		return n, nil
	}
	if v, ok := e.constants[x.Name]; ok {
		return e.b.Scalar(v), nil
	}
	if eq := e.lateEquations[x.Name]; eq != nil && !e.reported.names[x.Name] {
		delete(e.lateEquations, x.Name) // in a draft, the definition may refer to itself
		n := e.equation(eq)
		e.lateEquations[x.Name] = eq
		if n != nil {
			e.define(x.Name, n)
			return n, nil
		}
	}
	e.reported.names[x.Name] = true
	return nil, errReported
}

func (e *expression) unary(x *ast.UnaryExpr) (*graph.Node, error) {
	n, err := e.node(x.X)
	if err != nil {
		return nil, err
	}
	return e.apply(x, graph.OpNeg, graph.Attrs{}, n)
}

var operators = map[token.Token]graph.Op{
	token.ADD: graph.OpAdd, token.SUB: graph.OpSub, token.MUL: graph.OpMul, token.QUO: graph.OpDiv,
}

func (e *expression) binary(x *ast.BinaryExpr) (*graph.Node, error) {
	l, lerr := e.node(x.X)
	r, rerr := e.node(x.Y)
	if err := firstReported(lerr, rerr); err != nil {
		return nil, err
	}
	if op, ok := operators[x.Op]; ok {
		return e.apply(x, op, graph.Attrs{}, l, r)
	}
	return e.comparison(x, l, r)
}

// comparison lowers a comparison: 1 if it is true, else 0. It is false for NaN, as in NumPy and PyTorch. No gradient
// flows through it.
func (e *expression) comparison(x *ast.BinaryExpr, l, r *graph.Node) (*graph.Node, error) {
	more, err := e.apply(x, graph.OpGreater, graph.Attrs{}, l, r)
	if err != nil {
		return nil, err
	}
	switch x.Op {
	case token.GTR:
		return more, nil
	case token.LSS:
		return e.b.Greater(r, l), nil
	case token.GEQ:
		return e.b.GreaterOrEqual(l, r), nil
	case token.LEQ:
		return e.b.GreaterOrEqual(r, l), nil
	default: // ==
		return e.b.Sub(e.b.GreaterOrEqual(l, r), more), nil
	}
}

// firstReported joins errors without those that were already reported.
func firstReported(errs ...error) error {
	var list diag.List
	reported := false
	for _, err := range errs {
		if errors.Is(err, errReported) {
			reported = true
		} else if err != nil {
			list.AddError(diag.Pos{}, err)
		}
	}
	if len(list) > 0 {
		return list
	}
	if reported {
		return errReported
	}
	return nil
}
