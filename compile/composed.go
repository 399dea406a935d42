package compile

import (
	"go/ast"
	"math"

	"github.com/miplc/miplc/graph"
)

// uniformBits are the random bits of a value of uniform.
const uniformBits = 16

// normEpsilon keeps the variance of equal values from a division by 0; PyTorch's default.
const normEpsilon = 1e-5

// maxTop bounds the n of bag_top, which takes a pass over the instances for each of them.
const maxTop = 64

// maxLoop bounds the columns that bag_matmul and bag_scores take one by one.
const maxLoop = 256

// layerNorm normalises along the last axis.
func (e *expression) layerNorm(x *ast.CallExpr, args []*graph.Node) (*graph.Node, error) {
	b, a := e.b, args[0]
	if len(a.Shape) == 0 {
		return nil, e.errorf(x, "layer_norm needs an axis to go along, this is a single number")
	}
	last := len(a.Shape) - 1
	count := b.SumAll(b.Fill(1, a.Shape[last:]))
	mean := func(v *graph.Node) *graph.Node { return b.Div(b.Sum(v, true, last), count) }
	return e.normalized(x, args, b.Sub(a, mean(a)), mean)
}

// bagNorm normalises over the instances of each bag.
func (e *expression) bagNorm(x *ast.CallExpr, args []*graph.Node) (*graph.Node, error) {
	if err := e.wantInstances(x, args[0], 0); err != nil {
		return nil, err
	}
	mean := func(v *graph.Node) *graph.Node { return e.b.SegmentGather(e.bagMean(v), e.bagOf) }
	return e.normalized(x, args, e.b.Sub(args[0], mean(args[0])), mean)
}

// normalized divides centred values by their standard deviation and applies gain and bias.
func (e *expression) normalized(x *ast.CallExpr, args []*graph.Node, centred *graph.Node, mean func(*graph.Node) *graph.Node) (*graph.Node, error) {
	b := e.b
	deviation := b.Sqrt(b.Add(mean(b.Mul(centred, centred)), b.Scalar(normEpsilon)))
	scaled, err := e.apply(x, graph.OpMul, graph.Attrs{}, b.Div(centred, deviation), args[1])
	if err != nil {
		return nil, err
	}
	return e.apply(x, graph.OpAdd, graph.Attrs{}, scaled, args[2])
}

// wantInstances refuses a value without one row per instance; rank 0 is any.
func (e *expression) wantInstances(x *ast.CallExpr, n *graph.Node, rank int) error {
	switch s := n.Shape; {
	case len(s) == 0 || s[0] != graph.N:
		return e.errorf(x, "%s needs one row per instance, [N, ...], not %v", written(x), s)
	case rank > 0 && len(s) != rank:
		return e.errorf(x, "%s needs one row of numbers per instance, [N, columns], not %v", written(x), s)
	}
	return nil
}

// flatten keeps the first axis.
func (e *expression) flatten(x *ast.CallExpr, args []*graph.Node) (*graph.Node, error) {
	s := args[0].Shape
	if len(s) == 0 || !s[1:].Static() {
		return nil, e.errorf(x, "flatten needs rows of numbers, such as [N, a, b], not %v", s)
	}
	return e.b.Reshape(args[0], graph.Shape{s[0], graph.Dim(s[1:].Elements(1, 1))}), nil
}

// bagAttention is SegmentAttention for each head.
func (e *expression) bagAttention(x *ast.CallExpr, args []*graph.Node) (*graph.Node, error) {
	heads := 1
	if len(x.Args) > 3 {
		v, err := e.setting(x, 3, 1, maxLoop, true)
		if err != nil {
			return nil, err
		}
		heads = int(v)
	}
	if heads == 1 {
		return one(graph.OpSegmentAttention)(e, x, args)
	}
	for _, a := range args {
		if err := e.wantInstances(x, a, 2); err != nil {
			return nil, err
		}
		if int(a.Shape[1])%heads != 0 {
			return nil, e.errorf(x, "bag_attention: the %d columns of %v do not divide into %d heads", int(a.Shape[1]), a.Shape, heads)
		}
	}
	parts := make([]*graph.Node, heads)
	for i := range parts {
		in := make([]*graph.Node, len(args), len(args)+1)
		for j, a := range args {
			width := int(a.Shape[1]) / heads
			in[j] = e.b.Slice(a, 1, i*width, (i+1)*width)
		}
		part, err := e.apply(x, graph.OpSegmentAttention, graph.Attrs{}, append(in, e.bagOf)...)
		if err != nil {
			return nil, err
		}
		parts[i] = part
	}
	return e.b.Concat(1, parts...), nil
}

// bagMatmul sums products over the instances of each bag, one column of the narrower
// factor after the other: a value [N, a, b] would be too large, and for a single bag each
// column becomes a matrix product.
func (e *expression) bagMatmul(x *ast.CallExpr, args []*graph.Node) (*graph.Node, error) {
	for _, a := range args {
		if err := e.wantInstances(x, a, 2); err != nil {
			return nil, err
		}
	}
	b, narrow, wide, axis := e.b, args[0], args[1], 1
	if narrow.Shape[1] > wide.Shape[1] {
		narrow, wide, axis = wide, narrow, 2
	}
	shape := graph.Shape{graph.B, 1, wide.Shape[1]}
	if axis == 2 {
		shape = graph.Shape{graph.B, wide.Shape[1], 1}
	}
	return e.columns(x, int(narrow.Shape[1]), axis, func(c int) *graph.Node {
		return b.Reshape(b.SegmentSum(b.Mul(column(b, narrow, c), wide), e.bagOf), shape)
	})
}

// bagScores multiplies the instances with one row of the matrix of their bag after the
// other.
func (e *expression) bagScores(x *ast.CallExpr, args []*graph.Node) (*graph.Node, error) {
	b, a, m := e.b, args[0], args[1]
	if err := e.wantInstances(x, a, 2); err != nil {
		return nil, err
	}
	if s := m.Shape; len(s) != 3 || s[0] != graph.B || s[2] != a.Shape[1] {
		return nil, e.errorf(x, "bag_scores needs instances [N, d] and a matrix [B, c, d] for each bag, they are %v and %v", a.Shape, s)
	}
	c, d := int(m.Shape[1]), int(m.Shape[2])
	rows := b.Reshape(m, graph.Shape{graph.B, graph.Dim(c * d)}) // onnx-go slices matrices alone
	return e.columns(x, c, 1, func(c int) *graph.Node {
		row := b.Slice(rows, 1, c*d, (c+1)*d)
		return b.Sum(b.Mul(a, b.SegmentGather(row, e.bagOf)), true, 1)
	})
}

// columns joins count parts along an axis.
func (e *expression) columns(x *ast.CallExpr, count, axis int, part func(c int) *graph.Node) (*graph.Node, error) {
	if count > maxLoop {
		return nil, e.errorf(x, "%s takes at most %d columns, this has %d", written(x), maxLoop, count)
	}
	parts := make([]*graph.Node, count)
	for c := range parts {
		parts[c] = part(c)
	}
	return e.b.Concat(axis, parts...), nil
}

func column(b *graph.Builder, x *graph.Node, c int) *graph.Node { return b.Slice(x, 1, c, c+1) }

// bagTop marks the first maximum of each bag n times; those found fall so low that they
// are found again only in bags without others.
func (e *expression) bagTop(x *ast.CallExpr, args []*graph.Node) (*graph.Node, error) {
	if err := e.wantInstances(x, args[0], 0); err != nil {
		return nil, err
	}
	n, err := e.setting(x, 1, 1, maxTop, true)
	if err != nil {
		return nil, err
	}
	b := e.b
	rest := b.StopGrad(args[0])
	var top *graph.Node
	for range int(n) {
		found := b.SegmentMaxMask(rest, e.bagOf)
		if top == nil {
			top = found
		} else {
			top = b.Maximum(top, found)
		}
		rest = b.Sub(rest, b.Mul(found, b.Scalar(outsideCandidates)))
	}
	return top, nil
}

// dropoutOf is a dropout block in an equation.
func (e *expression) dropoutOf(x *ast.CallExpr, args []*graph.Node) (*graph.Node, error) {
	mask, err := e.draws(x, args[0], 1, func(rate float64) float64 { return rate })
	if mask == nil || err != nil {
		return args[0], err
	}
	return e.b.Mul(args[0], mask), nil
}

// random lowers the function random. In training it is 1 with the given probability, else 0; in
// predictions it is a constant.
func (e *expression) random(x *ast.CallExpr, args []*graph.Node) (*graph.Node, error) {
	prediction, err := e.setting(x, 2, 0, 1, false)
	if err != nil {
		return nil, err
	}
	mask, err := e.draws(x, args[0], 1, func(rate float64) float64 { return 1 - rate })
	switch {
	case err != nil:
		return nil, err
	case mask != nil:
		return e.b.Greater(mask, e.b.Scalar(0)), nil
	case e.training: // a rate of 1
		prediction = 1
	}
	return e.b.Fill(prediction, args[0].Shape), nil
}

// draws returns the random mask of a call for values of the shape of a. drop converts argument i
// to the probability of a zero. The mask is nil in predictions, and for the probability 0.
func (e *expression) draws(x *ast.CallExpr, a *graph.Node, i int, drop func(rate float64) float64) (*graph.Node, error) {
	rate, err := e.setting(x, i, 0, 1, false)
	if err != nil {
		return nil, err
	}
	if err := e.wantRandomRows(x, a); err != nil {
		return nil, err
	}
	p := drop(rate)
	switch {
	case p >= 1:
		return nil, e.errorf(x.Args[i], "%s with a rate of %g gives only zeros", written(x), rate)
	case !e.training || p == 0:
		return nil, nil
	}
	return e.draw(x, a.Shape, p), nil
}

// draw gives the mask of a call. An equation that losses and the update share is lowered
// once for each of them; its draws are the same.
func (e *expression) draw(x *ast.CallExpr, shape graph.Shape, p float64) *graph.Node {
	key := e.path + e.place(x).String()
	if e.drawn[key] == nil {
		e.drawn[key] = e.mask(e.numbered("dropout"), shape, p)
	}
	return e.drawn[key]
}

func (e *expression) wantRandomRows(x *ast.CallExpr, a *graph.Node) error {
	if s := a.Shape; len(s) == 0 || s[0] != graph.N && s[0] != graph.B || !s[1:].Static() {
		return e.errorf(x, "%s needs one row per instance or bag, [N, ...] or [B, ...], not %v", written(x), s)
	}
	return nil
}

// uniform lowers uniform(x, ...) to a sum of random bits, because engines draw masks only.
func (e *expression) uniform(x *ast.CallExpr, args []*graph.Node) (*graph.Node, error) {
	b, a := e.b, args[0]
	prediction, err := e.setting(x, 1, 0, 1, false)
	if err == nil {
		err = e.wantRandomRows(x, a)
	}
	if err != nil || !e.training {
		return b.Fill(prediction, a.Shape), err
	}
	width := int(a.Shape[1:].Elements(1, 1))
	bits := e.draw(x, graph.Shape{a.Shape[0], graph.Dim(uniformBits * width)}, 0.5) // 0 or 2
	sum := b.Scalar(math.Ldexp(1, -uniformBits-1))
	for i := range uniformBits {
		sum = b.Add(sum, b.Mul(b.Slice(bits, 1, i*width, (i+1)*width), b.Scalar(math.Ldexp(1, -i-2))))
	}
	return b.Reshape(sum, a.Shape), nil
}
