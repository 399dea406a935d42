// The table of functions that equations can call, the lowering of the simple ones, and calls of functions of a spec.

package compile

import (
	"errors"
	"fmt"
	"go/ast"
	"math"
	"strings"

	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/language"
)

// function lowers the call x. The number and the form of its arguments are already checked; args are
// those that are values.
type function func(e *expression, x *ast.CallExpr, args []*graph.Node) (*graph.Node, error)

// functions has one row per function of the language. Those that are element-wise ops are found by their names. init
// fills it, because the rows refer to it.
var functions map[string]function

func init() {
	functions = map[string]function{
		"matmul":         singleOp(graph.OpMatMul),
		"transpose":      (*expression).transpose,
		"log":            (*expression).log,
		"clamp":          (*expression).clamp,
		"softmax":        softmax(graph.OpSoftmax),
		"log_softmax":    softmax(graph.OpLogSoftmax),
		"masked_softmax": (*expression).maskedSoftmax,
		"sum":            sum,
		"mean":           (*expression).mean,
		"max":            reduction(graph.OpMax),
		"concat":         (*expression).concat,
		"bag_sum":        singleOp(graph.OpSegmentSum),
		"bag_mean":       bagFunction(func(e *expression, x *graph.Node) *graph.Node { return e.bagMean(x) }),
		"bag_max":        singleOp(graph.OpSegmentMax),
		"bag_min":        bagFunction(func(e *expression, x *graph.Node) *graph.Node { return e.bagMin(x) }),
		"bag_count":      bagFunction(func(e *expression, _ *graph.Node) *graph.Node { return e.bagCount(2) }),
		"bag_softmax":    singleOp(graph.OpSegmentSoftmax),
		"bag_attention":  (*expression).bagAttention,
		"of_bag":         singleOp(graph.OpSegmentGather),
		"bag_matmul":     (*expression).bagMatmul,
		"bag_scores":     (*expression).bagScores,
		"bag_top":        (*expression).bagTop,
		"flatten":        (*expression).flatten,
		"split":          (*expression).split,
		"layer_norm":     (*expression).layerNorm,
		"bag_norm":       (*expression).bagNorm,
		"batch_norm":     (*expression).batchNormOf,
		"dropout":        (*expression).dropoutOf,
		"random":         (*expression).random,
		"uniform":        (*expression).uniform,
		"normal":         (*expression).normal,
		"stop_gradient":  singleOp(graph.OpStopGrad),
	}
	for _, op := range graph.AllOps() {
		name := strings.ToLower(op.String())
		if op.Elementwise() && functions[name] == nil && language.FunctionNamed(name) != nil {
			functions[name] = singleOp(op)
		}
	}
}

// singleOp lowers a function that is one op of the graph.
func singleOp(op graph.Op) function {
	return func(e *expression, x *ast.CallExpr, args []*graph.Node) (*graph.Node, error) {
		if op.IsSegment() {
			args = append(args, e.bagOf)
		}
		return e.apply(x, op, graph.Attrs{}, args...)
	}
}

// softmax lowers a softmax along the last axis. Along one value its result is 1, or 0 for the logarithm, whatever the
// value is: the user meant the softmax over the instances of a bag.
func softmax(op graph.Op) function {
	return func(e *expression, x *ast.CallExpr, args []*graph.Node) (*graph.Node, error) {
		if err := e.wantSeveral(x, args[0]); err != nil {
			return nil, err
		}
		return singleOp(op)(e, x, args)
	}
}

// wantSeveral returns an error if the last axis of the argument of a softmax has size 1.
func (e *expression) wantSeveral(x *ast.CallExpr, a *graph.Node) error {
	s, name := a.Shape, x.Fun.(*ast.Ident).Name
	if len(s) == 0 || s[len(s)-1] != 1 {
		return nil
	}
	d := e.at(e.eq, int(x.Pos())-1, int(x.Fun.End())-1, name+" along a last axis of size 1 is the same for every value")
	if name == "softmax" {
		d.Suggestion = "bag_softmax"
	}
	return d.WithNote("the shape is %v; bag_softmax goes along the instances of each bag", s)
}

// bagFunction lowers a function of several ops that returns one row per bag.
func bagFunction(f func(e *expression, x *graph.Node) *graph.Node) function {
	return func(e *expression, x *ast.CallExpr, args []*graph.Node) (*graph.Node, error) {
		if err := e.wantInstances(x, args[0], 0); err != nil {
			return nil, err
		}
		return f(e, args[0]), nil
	}
}

// call lowers a function call.
func (e *expression) call(x *ast.CallExpr) (*graph.Node, error) {
	name := x.Fun.(*ast.Ident)
	def := language.FunctionNamed(name.Name)
	var args []*graph.Node
	var errs []error
	for i, a := range x.Args {
		if def == nil || def.ArgKind(i) == language.ArgValue {
			n, err := e.node(a)
			args, errs = append(args, n), append(errs, err)
		}
	}
	if err := firstReported(errs...); err != nil {
		return nil, err
	}
	if def == nil {
		return e.inline(x, args)
	}
	e.b.At(e.place(x))
	return functions[name.Name](e, x, args)
}

func (e *expression) log(_ *ast.CallExpr, args []*graph.Node) (*graph.Node, error) {
	return e.logOf(args[0]), nil
}

func (e *expression) transpose(x *ast.CallExpr, args []*graph.Node) (*graph.Node, error) {
	if len(args[0].Shape) != 2 {
		return nil, e.errorf(x, "transpose needs a matrix, not %v", args[0].Shape)
	}
	return e.apply(x, graph.OpTranspose, graph.Attrs{Perm: []int{1, 0}}, args...)
}

func (e *expression) concat(x *ast.CallExpr, args []*graph.Node) (*graph.Node, error) {
	return e.apply(x, graph.OpConcat, graph.Attrs{Axis: len(args[0].Shape) - 1}, args...)
}

func (e *expression) clamp(x *ast.CallExpr, args []*graph.Node) (*graph.Node, error) {
	lo, _ := language.Constant(x.Args[1])
	hi, _ := language.Constant(x.Args[2])
	return e.apply(x, graph.OpClamp, graph.Attrs{Lo: lo, Hi: hi}, args...)
}

// maskedSoftmax computes a softmax over the entries where m is 1. The others get such a low value
// before the softmax that their exponential is zero. The product makes rows without a 1 zero.
func (e *expression) maskedSoftmax(x *ast.CallExpr, args []*graph.Node) (*graph.Node, error) {
	a, m := args[0], args[1]
	if len(a.Shape) == 0 {
		return nil, e.errorf(x, "masked_softmax needs an axis to go along, this is a single number")
	}
	if err := e.wantSeveral(x, a); err != nil {
		return nil, err
	}
	outside := e.b.Mul(e.b.Sub(e.b.Scalar(1), m), e.b.Scalar(excluded))
	low, err := e.apply(x, graph.OpSub, graph.Attrs{}, a, outside)
	if err != nil {
		return nil, err
	}
	share, err := e.apply(x, graph.OpSoftmax, graph.Attrs{}, low)
	if err != nil {
		return nil, err
	}
	return e.apply(x, graph.OpMul, graph.Attrs{}, m, share)
}

// mean divides a sum by the number of elements along the same axes.
func (e *expression) mean(x *ast.CallExpr, args []*graph.Node) (*graph.Node, error) {
	a := args[0]
	if len(x.Args) == 1 {
		count := e.b.SumAll(e.b.Fill(1, a.Shape))
		return e.apply(x, graph.OpDiv, graph.Attrs{}, e.b.SumAll(a), count)
	}
	axis, err := e.axis(x, a)
	if err != nil {
		return nil, err
	}
	sum := e.b.Sum(a, true, axis)
	return e.apply(x, graph.OpDiv, graph.Attrs{}, sum, e.b.SumAll(e.b.Fill(1, a.Shape[axis:axis+1])))
}

// sum adds up all elements, or those along an axis.
func sum(e *expression, x *ast.CallExpr, args []*graph.Node) (*graph.Node, error) {
	if len(x.Args) == 1 {
		return e.b.SumAll(args[0]), nil
	}
	return reduction(graph.OpSum)(e, x, args)
}

// reduction reduces along one axis, which keeps the extent 1.
func reduction(op graph.Op) function {
	return func(e *expression, x *ast.CallExpr, args []*graph.Node) (*graph.Node, error) {
		axis, err := e.axis(x, args[0])
		if err != nil {
			return nil, err
		}
		return e.apply(x, op, graph.Attrs{Axes: []int{axis}, Keep: true}, args[0])
	}
}

// setting reads the argument i of a call: a literal, or the name of a number or size. It
// must be between lo and hi, and a whole number if whole is true.
func (e *expression) setting(x *ast.CallExpr, i int, lo, hi float64, whole bool) (float64, error) {
	a := x.Args[i]
	v, ok := language.Constant(a)
	if name, isName := a.(*ast.Ident); isName {
		n, err := e.name(name)
		if err != nil {
			return 0, err
		}
		if ok = n.Op == graph.OpConst && len(n.Shape) == 0; ok {
			v = n.Attrs.Data[0]
		}
	}
	if def := language.FunctionNamed(written(x)); !ok || !(v >= lo && v <= hi) || whole && v != math.Trunc(v) {
		what := "a number"
		if whole {
			what = "a whole number"
		}
		return 0, e.errorf(a, "the argument %s of %s must be %s from %g to %g that does not change", def.Args[i].Name,
			def.Name, what, lo, hi)
	}
	return v, nil
}

// axis reads the second argument of a reduction of a.
func (e *expression) axis(x *ast.CallExpr, a *graph.Node) (int, error) {
	v, _ := language.Constant(x.Args[1])
	axis := int(v)
	if axis < 0 {
		axis += len(a.Shape)
	}
	if axis < 0 || axis >= len(a.Shape) {
		return 0, e.errorf(x.Args[1], "the axis must be a whole number from 0 to %d for the shape %v", len(a.Shape)-1,
			a.Shape)
	}
	return axis, nil
}

// inline lowers a call of a function of the spec: its equations, with the values of the
// call in place of the arguments. An error is reported at its place in the function,
// once for all calls, with the place of the call.
func (e *expression) inline(x *ast.CallExpr, args []*graph.Node) (*graph.Node, error) {
	name := x.Fun.(*ast.Ident).Name
	f := e.functions[name]
	e.inlined++
	if f == nil || f.Value == nil || e.reported.functions[name] || e.oversize(e.place(x)) {
		return nil, errReported
	}
	inner := &expression{lowerer: e.lowerer, locals: map[string]*graph.Node{}, path: fmt.Sprintf("%s%p ", e.path, x)}
	for i, a := range f.Args {
		inner.locals[a.V] = args[i]
	}
	for i := range f.Let {
		inner.eq = &f.Let[i]
		n, err := inner.body()
		if err != nil {
			return nil, e.failedCall(x, err)
		}
		inner.locals[inner.eq.Name.V] = n
	}
	inner.eq = f.Value
	n, err := inner.body()
	if err != nil {
		return nil, e.failedCall(x, err)
	}
	return n, nil
}

// body lowers one equation of a function.
func (e *expression) body() (*graph.Node, error) {
	if e.eq.Expr == nil {
		return nil, errReported
	}
	return e.node(e.eq.Expr)
}

// failedCall adds the position of a call to the errors of a function.
func (e *expression) failedCall(x *ast.CallExpr, err error) error {
	if errors.Is(err, errReported) {
		return err
	}
	name := x.Fun.(*ast.Ident).Name
	e.reported.functions[name] = true
	var list diag.List
	list.AddError(e.place(x), err)
	for i := range list {
		list[i] = list[i].WithNote("%s is called at %s", name, e.place(x))
	}
	return list
}
