// The syntax that expressions may use.

package language

import (
	"go/ast"
	"go/token"
	"strconv"

	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/language/schema"
)

// maxNesting is the maximum depth of an expression. Later stages walk it recursively.
const maxNesting = 500

// syntaxChecker reports parts of the syntax tree that the language does not have: kinds of expressions, operators,
// functions, numbers and arguments of functions. Names are checked later, when all of them are known.
type syntaxChecker struct {
	*schema.Reader
	eq    *Equation
	wrong bool // something was reported
}

func (f *syntaxChecker) add(d diag.Diagnostic) {
	f.AddFault(d)
	f.wrong = true
}

func (f *syntaxChecker) check(x ast.Expr, depth int) {
	if depth > maxNesting {
		f.add(f.eq.errorAt(x, "the equation is nested more than %d levels deep", maxNesting).
			WithNote("split it into several equations"))
		return
	}
	switch x := x.(type) {
	case *ast.Ident:
	case *ast.BasicLit:
		f.literal(x)
	case *ast.ParenExpr:
		f.check(x.X, depth+1)
	case *ast.UnaryExpr:
		if x.Op != token.SUB {
			f.operator(x.OpPos, x.Op)
		}
		f.check(x.X, depth+1)
	case *ast.BinaryExpr:
		f.binary(x, depth)
	case *ast.CallExpr:
		f.call(x, depth)
	case *ast.SelectorExpr:
		f.add(f.eq.errorAt(x, "names with a dot are not part of the language").
			WithNote("functions are plain words, such as exp(x) or transpose(x)"))
	case *ast.IndexExpr, *ast.SliceExpr, *ast.IndexListExpr:
		f.add(f.eq.errorAt(x, "indexing is not part of the language"))
	case *ast.StarExpr:
		f.add(f.eq.errorAt(x, "a value is missing before *"))
	default:
		f.add(f.eq.errorAt(x, "this kind of expression is not part of the language").
			WithNote("an equation has names, numbers, + - * /, comparisons, parentheses and calls"))
	}
}

func (f *syntaxChecker) literal(x *ast.BasicLit) {
	if x.Kind != token.INT && x.Kind != token.FLOAT || !schema.IsNumber(x.Value) {
		f.add(f.eq.errorAt(x, "%s is not a number of the language", x.Value).
			WithNote("write numbers such as 2, 0.5 or 1e-5"))
	} else if _, err := strconv.ParseFloat(x.Value, 64); err != nil {
		f.add(f.eq.errorAt(x, "the number %s is too large", x.Value))
	}
}

func (f *syntaxChecker) operator(at token.Pos, op token.Token) {
	start := offsetOf(at)
	d := f.eq.errorBetween(start, start+len(op.String()), "the operator %v is not part of the language", op).
		WithNote("the operators are + - * / > < >= <= == and a minus before a value")
	if op == token.XOR {
		d = d.WithNote("there is no power operator: write x * x for a square, or exp(y * log(x))")
	}
	f.add(d)
}

func (f *syntaxChecker) binary(x *ast.BinaryExpr, depth int) {
	if star, ok := x.Y.(*ast.StarExpr); ok && x.Op == token.MUL {
		start := offsetOf(x.OpPos)
		f.add(f.eq.errorBetween(start, offsetOf(star.Star)+1, "there is no power operator").
			WithNote("write x * x for a square, sqrt(x), or exp(y * log(x))"))
		f.check(x.X, depth+1)
		f.check(star.X, depth+1)
		return
	}
	switch x.Op {
	case token.ADD, token.SUB, token.MUL, token.QUO:
	case token.GTR, token.LSS, token.GEQ, token.LEQ, token.EQL:
		f.chained(x)
	default:
		f.operator(x.OpPos, x.Op)
	}
	f.check(x.X, depth+1)
	f.check(x.Y, depth+1)
}

// chained reports a comparison of a comparison, such as a < b < c, which would compare a 0 or a 1 with c.
func (f *syntaxChecker) chained(x *ast.BinaryExpr) {
	for _, side := range []ast.Expr{x.X, x.Y} {
		if inner, ok := side.(*ast.BinaryExpr); ok && inner.Op.Precedence() == token.EQL.Precedence() {
			f.add(f.eq.errorAt(x, "comparisons cannot be chained").
				WithNote("write (a < b) * (b < c)"))
			return
		}
	}
}

func (f *syntaxChecker) call(x *ast.CallExpr, depth int) {
	name, ok := x.Fun.(*ast.Ident)
	if !ok {
		d := f.eq.errorAt(x.Fun, "only the functions of the language can be called")
		if method, ok := x.Fun.(*ast.SelectorExpr); ok {
			if fn := schema.Find(Functions, method.Sel.Name); fn != nil {
				d = d.WithNote("write %s", fn.Signature())
			}
		}
		f.add(d)
		return
	}
	fn := schema.Find(Functions, name.Name)
	switch {
	case x.Ellipsis.IsValid():
		start := offsetOf(x.Ellipsis)
		f.add(f.eq.errorBetween(start, start+3, "... is not part of the language"))
	case fn != nil: // functions of the spec are checked when all of them are known
		f.arguments(x, fn)
	}
	for i, a := range x.Args {
		if fn == nil || fn.ArgKind(i) == ArgValue {
			f.check(a, depth+1)
		}
	}
}

func (f *syntaxChecker) arguments(x *ast.CallExpr, fn *Function) {
	least, most := fn.Arity()
	if len(x.Args) < least || most >= 0 && len(x.Args) > most {
		f.add(f.eq.errorAt(x, "%s takes %s, not %d", fn.Name, fn.arityText(), len(x.Args)).
			WithNote("%s: %s", fn.Signature(), schema.Plain(fn.Doc)))
		return
	}
	for i, a := range x.Args {
		switch fn.ArgKind(i) {
		case ArgAxis:
			if v, ok := Constant(a); !ok || v != float64(int(v)) || v < -8 || v > 8 {
				f.add(f.eq.errorAt(a, "the axis of %s must be a literal whole number", fn.Name).
					WithNote("0 is the first axis, -1 the last"))
			}
		case ArgSetting:
			_, isName := a.(*ast.Ident)
			if _, ok := Constant(a); !ok && !isName {
				f.add(f.eq.errorAt(a, "the argument %s of %s must be a number or the name of a number or size", fn.Args[i].Name,
					fn.Name))
			}
		case ArgNumber:
			if _, ok := Constant(a); !ok {
				f.add(f.eq.errorAt(a, "the argument %s of %s must be a literal number", fn.Args[i].Name, fn.Name))
			}
		}
	}
	if fn.Name == "clamp" {
		lo, ok1 := Constant(x.Args[1])
		if hi, ok2 := Constant(x.Args[2]); ok1 && ok2 && lo > hi {
			f.add(f.eq.errorAt(x, "the lower bound %g of clamp is above the upper bound %g", lo, hi))
		}
	}
}

// Constant reads a literal number with optional signs and parentheses.
func Constant(x ast.Expr) (float64, bool) {
	switch x := x.(type) {
	case *ast.ParenExpr:
		return Constant(x.X)
	case *ast.UnaryExpr:
		v, ok := Constant(x.X)
		return -v, ok && x.Op == token.SUB
	case *ast.BasicLit:
		if !schema.IsNumber(x.Value) {
			return 0, false
		}
		v, err := strconv.ParseFloat(x.Value, 64)
		return v, err == nil
	}
	return 0, false
}

// calls calls each for every call of a function that is not of the language, the outer
// ones first.
func (e *Equation) calls(each func(call *ast.CallExpr, name string)) {
	ast.Inspect(e.Expr, func(x ast.Node) bool {
		if call, ok := x.(*ast.CallExpr); ok {
			if name := call.Fun.(*ast.Ident).Name; schema.Find(Functions, name) == nil {
				each(call, name)
			}
		}
		return true
	})
}

// names calls each for every name used as a value, in order.
func (e *Equation) names(each func(*ast.Ident)) {
	ast.Inspect(e.Expr, func(x ast.Node) bool {
		switch x := x.(type) {
		case *ast.CallExpr:
			for _, a := range x.Args {
				sub := Equation{Expr: a}
				sub.names(each)
			}
			return false
		case *ast.Ident:
			each(x)
		}
		return true
	})
}
