package compile

import (
	"go/ast"
	"go/token"
	"strconv"

	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/specs"
)

// unaryOps are the functions of one argument that are one op of the graph.
var unaryOps = map[string]graph.Op{
	"exp": graph.OpExp, "sqrt": graph.OpSqrt, "abs": graph.OpAbs, "tanh": graph.OpTanh,
	"sigmoid": graph.OpSigmoid, "softplus": graph.OpSoftplus, "relu": graph.OpRelu,
	"softmax": graph.OpSoftmax, "log_softmax": graph.OpLogSoftmax, "stop_gradient": graph.OpStopGrad,
}

// binaryOps are the functions of two arguments that are one op of the graph.
var binaryOps = map[string]graph.Op{
	"matmul": graph.OpMatMul, "maximum": graph.OpMaximum, "minimum": graph.OpMinimum,
}

// bagOps are the functions along bag_of that are one op of the graph.
var bagOps = map[string]graph.Op{
	"bag_sum": graph.OpSegmentSum, "bag_max": graph.OpSegmentMax,
	"bag_softmax": graph.OpSegmentSoftmax, "of_bag": graph.OpSegmentGather,
}

// call lowers a function call.
func (e *expression) call(x *ast.CallExpr) (*graph.Node, error) {
	fn, ok := x.Fun.(*ast.Ident)
	if !ok {
		return nil, e.errorf(x.Fun, "only the functions of the language can be called")
	}
	def := specs.FunctionNamed(fn.Name)
	if def == nil {
		return nil, e.errorf(fn, "there is no function %q", fn.Name)
	}
	least, most := def.Arity()
	if len(x.Args) < least || (most >= 0 && len(x.Args) > most) {
		return nil, e.errorf(x, "call it as %s", def.Signature())
	}
	if fn.Name == "clamp" {
		return e.clamp(x)
	}
	args, err := e.args(fn.Name, x.Args)
	if err != nil {
		return nil, err
	}
	e.b.At(e.place(x))
	if op, ok := unaryOps[fn.Name]; ok {
		return e.apply(x, op, graph.Attrs{}, args...)
	}
	if op, ok := binaryOps[fn.Name]; ok {
		return e.apply(x, op, graph.Attrs{}, args...)
	}
	if op, ok := bagOps[fn.Name]; ok {
		return e.apply(x, op, graph.Attrs{}, args[0], e.bagOf)
	}
	return e.compose(x, fn, args)
}

// args lowers the tensor arguments; the axis of a reduction is not one.
func (e *expression) args(name string, exprs []ast.Expr) ([]*graph.Node, error) {
	if name == "sum" || name == "mean" || name == "max" {
		exprs = exprs[:1]
	}
	nodes, errs := make([]*graph.Node, len(exprs)), make([]error, len(exprs))
	for i, a := range exprs {
		nodes[i], errs[i] = e.node(a)
	}
	return nodes, firstReported(errs...)
}

func (e *expression) compose(x *ast.CallExpr, fn *ast.Ident, args []*graph.Node) (*graph.Node, error) {
	a := args[0]
	switch fn.Name {
	case "log":
		return e.logOf(a), nil
	case "transpose":
		if len(a.Shape) != 2 {
			return nil, e.errorf(x, "transpose needs a matrix, not %v", a.Shape)
		}
		return e.apply(x, graph.OpTranspose, graph.Attrs{Perm: []int{1, 0}}, a)
	case "concat":
		return e.apply(x, graph.OpConcat, graph.Attrs{Axis: len(a.Shape) - 1}, args...)
	case "masked_softmax":
		return e.maskedSoftmax(x, a, args[1])
	case "bag_mean", "bag_min", "bag_count":
		if len(a.Shape) == 0 || a.Shape[0] != graph.N {
			return nil, e.errorf(x, "%s needs one row per instance, [N, ...], not %v", fn.Name, a.Shape)
		}
		switch fn.Name {
		case "bag_min":
			return e.bagMin(a), nil
		case "bag_count":
			return e.bagCount(2), nil
		}
		return e.bagMean(a), nil
	case "sum", "mean", "max":
		return e.reduce(x, fn.Name, a)
	}
	return nil, e.errorf(fn, "bug: the function %q has no lowering", fn.Name)
}

// maskedSoftmax is a softmax over the entries where m is 1. Those where it is
// 0 fall so low before the softmax that their exponential is zero; the product
// makes rows without a 1 zero too.
func (e *expression) maskedSoftmax(x *ast.CallExpr, a, m *graph.Node) (*graph.Node, error) {
	if len(a.Shape) == 0 {
		return nil, e.errorf(x, "masked_softmax needs an axis to go along, this is a single number")
	}
	outside := e.b.Mul(e.b.Sub(e.b.Scalar(1), m), e.b.Scalar(outsideCandidates))
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

// reduce lowers sum, mean and max: over all elements, or over one axis that
// stays as an extent of 1.
func (e *expression) reduce(x *ast.CallExpr, name string, a *graph.Node) (*graph.Node, error) {
	if len(x.Args) == 1 {
		if name == "mean" {
			all := e.sumAll(e.b.Fill(1, a.Shape))
			return e.apply(x, graph.OpDiv, graph.Attrs{}, e.sumAll(a), all)
		}
		return e.sumAll(a), nil
	}
	v, ok := literal(x.Args[1])
	axis := int(v)
	if axis < 0 {
		axis += len(a.Shape)
	}
	if !ok || float64(int(v)) != v || axis < 0 || axis >= len(a.Shape) {
		return nil, e.errorf(x.Args[1], "the axis must be a whole number from 0 to %d for the shape %v", len(a.Shape)-1, a.Shape)
	}
	attrs := graph.Attrs{Axes: []int{axis}, Keep: true}
	if name == "max" {
		return e.apply(x, graph.OpMax, attrs, a)
	}
	sum, err := e.apply(x, graph.OpSum, attrs, a)
	if err != nil || name == "sum" {
		return sum, err
	}
	return e.apply(x, graph.OpDiv, graph.Attrs{}, sum, e.sumAll(e.b.Fill(1, graph.Shape{a.Shape[axis]})))
}

func (e *expression) clamp(x *ast.CallExpr) (*graph.Node, error) {
	a, err := e.node(x.Args[0])
	if err != nil {
		return nil, err
	}
	lo, ok1 := literal(x.Args[1])
	hi, ok2 := literal(x.Args[2])
	if !ok1 || !ok2 || lo > hi {
		return nil, e.errorf(x, "clamp needs two numbers as bounds, the lower first")
	}
	return e.apply(x, graph.OpClamp, graph.Attrs{Lo: lo, Hi: hi}, a)
}

// literal reads a number with an optional sign.
func literal(x ast.Expr) (float64, bool) {
	switch x := x.(type) {
	case *ast.ParenExpr:
		return literal(x.X)
	case *ast.UnaryExpr:
		v, ok := literal(x.X)
		return -v, ok && x.Op == token.SUB
	case *ast.BasicLit:
		v, err := strconv.ParseFloat(x.Value, 64)
		return v, err == nil
	}
	return 0, false
}
