// Functions of equations that take several ops: normalisation, attention among instances, products within bags.

package compile

import (
	"fmt"
	"go/ast"
	"math"

	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/diag"
)

// uniformBits is the number of random bits of a value of uniform.
const uniformBits = 16

// normEpsilon prevents a division by 0 if all values are equal. It is PyTorch's default.
const normEpsilon = 1e-5

// maxTop is the maximum n of bag_top, which passes n times over the instances.
const maxTop = 64

// maxSplit bounds the n of split.
const maxSplit = 1 << 20

// maxUnrolled is the maximum number of parts that a function lowers one by one: columns of bag_matmul and
// bag_scores, heads and extra keys of bag_attention.
const maxUnrolled = 256

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
func (e *expression) normalized(x *ast.CallExpr, args []*graph.Node, centered *graph.Node,
	mean func(*graph.Node) *graph.Node) (*graph.Node, error) {
	b := e.b
	deviation := b.Sqrt(b.Add(mean(b.Mul(centered, centered)), b.Scalar(normEpsilon)))
	return e.scaled(x, b.Div(centered, deviation), args)
}

// scaled applies the gain and bias of a normalisation.
func (e *expression) scaled(x *ast.CallExpr, normal *graph.Node, args []*graph.Node) (*graph.Node, error) {
	scaled, err := e.apply(x, graph.OpMul, graph.Attrs{}, normal, args[1])
	if err != nil {
		return nil, err
	}
	return e.apply(x, graph.OpAdd, graph.Attrs{}, scaled, args[2])
}

// batchNormShare is the share of a batch in the running statistics of batch_norm.
const batchNormShare = 0.1

// batchNormOf is a block batch_norm in an equation of the model.
func (e *expression) batchNormOf(x *ast.CallExpr, args []*graph.Node) (*graph.Node, error) {
	a := args[0]
	switch s := a.Shape; {
	case e.pastModel:
		return nil, e.errorf(x, "batch_norm has running statistics for predictions, so only model.let may use it; losses "+
			"and weights.update may use mean(x, 0)")
	case len(s) != 2 || s[0] != graph.N && s[0] != graph.B || !s[1:].Static():
		return nil, e.errorf(x, "batch_norm needs one row of numbers per instance or bag, [N, columns] or [B, columns], "+
			"not %v", s)
	case s[0] == graph.B && e.spec.Train.Batch.V == 1:
		return nil, diag.Errorf(batchPlace(e.spec, e.place(x)), "batch_norm of [B, columns] normalises over the bags of a "+
			"step, but train.batch is 1; set train.batch, for example to 16")
	}
	return e.scaled(x, e.standardized(e.numbered("batch_norm"), a, batchNormShare), args)
}

// wantInstances rejects a value without one row per instance. Rank 0 accepts any rank.
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

// split divides the last axis into n rows.
func (e *expression) split(x *ast.CallExpr, args []*graph.Node) (*graph.Node, error) {
	n, err := e.setting(x, 1, 1, maxSplit, true)
	if err != nil {
		return nil, err
	}
	s := args[0].Shape
	if len(s) != 2 || !s[1:].Static() || int(s[1])%int(n) != 0 {
		return nil, e.errorf(x, "split needs rows of numbers that divide into %d parts, not %v", int(n), s)
	}
	return e.b.Reshape(args[0], graph.Shape{s[0], graph.Dim(n), s[1] / graph.Dim(n)}), nil
}

// bagAttention computes attention for each head, over the instances of the bag and over the extra
// keys of the bag, if the call has any.
func (e *expression) bagAttention(x *ast.CallExpr, args []*graph.Node) (*graph.Node, error) {
	heads := 1
	if len(x.Args) > 3 {
		v, err := e.setting(x, 3, 1, maxUnrolled, true)
		if err != nil {
			return nil, err
		}
		heads = int(v)
	}
	if len(args) == 4 {
		return nil, e.errorf(x, "bag_attention: extra keys need values, as the argument after them")
	}
	for i, a := range args {
		if err := e.wantAttended(x, args, i); err != nil {
			return nil, err
		}
		if width := int(a.Shape[len(a.Shape)-1]); width%heads != 0 {
			return nil, e.errorf(x, "bag_attention: the %d columns of %v do not divide into %d heads", width, a.Shape, heads)
		}
	}
	parts := make([]*graph.Node, heads)
	for i := range parts {
		var extra [2][]*graph.Node
		for j := range args[3:] {
			extra[j] = e.rowsOfHead(args[3+j], i, heads)
		}
		in := make([]*graph.Node, 3)
		for j, a := range args[:3] {
			in[j] = a
			if width := int(a.Shape[1]) / heads; heads > 1 {
				in[j] = e.b.Slice(a, 1, i*width, (i+1)*width)
			}
		}
		parts[i] = e.attend(in[0], in[1], in[2], extra[0], extra[1])
	}
	if heads == 1 {
		return parts[0], nil
	}
	return e.b.Concat(1, parts...), nil
}

// wantAttended checks the shape of argument i of bag_attention: queries, keys and values of instances,
// then extra keys and values of bags.
func (e *expression) wantAttended(x *ast.CallExpr, args []*graph.Node, i int) error {
	if i < 3 {
		if err := e.wantInstances(x, args[i], 2); err != nil {
			return err
		}
		if q, k := args[0].Shape, args[1].Shape; i == 1 && q[1] != k[1] {
			return e.errorf(x, "bag_attention: queries %v and keys %v need the same number of columns", q, k)
		}
		return nil
	}
	s, columns := args[i].Shape, args[i-2].Shape[1]
	if len(s) != 3 || s[0] != graph.B || !s[1:].Static() || s[2] != columns || s[1] != args[3].Shape[1] ||
		s[1] > maxUnrolled {
		return e.errorf(x, "bag_attention: extra keys and values of each bag are [B, c, %d] and [B, c, %d], c at most %d, "+
			"not %v and %v; split(x, 1) makes one of each row of x",
			int(args[1].Shape[1]), int(args[2].Shape[1]), maxUnrolled, args[3].Shape, args[4].Shape)
	}
	return nil
}

// rowsOfHead returns the columns of a head of the rows of a matrix [B, c, columns] of each bag, each as [B, width].
func (e *expression) rowsOfHead(a *graph.Node, head, heads int) []*graph.Node {
	columns := int(a.Shape[2])
	flat := e.b.Reshape(a, graph.Shape{graph.B, a.Shape[1] * a.Shape[2]}) // onnx-go slices only matrices
	rows, width := make([]*graph.Node, int(a.Shape[1])), columns/heads
	for c := range rows {
		rows[c] = e.b.Slice(flat, 1, c*columns+head*width, c*columns+(head+1)*width)
	}
	return rows
}

// attend computes attention over the instances of the bag and over extra keys. Its softmax needs log Z, where Z is the
// sum of exp(score) over the instances, but SegmentAttention does not return Z. So attend lets the op also average an
// indicator of one instance of each bag. This average is the weight w = exp(s) / Z of the instance, whose score
// is s, hence log Z = s - log w. The weighted mean of the scores is a lower bound of log Z, which is exact where w
// underflows because another instance has all the weight.
func (e *expression) attend(q, k, v *graph.Node, keys, values []*graph.Node) *graph.Node {
	b := e.b
	if len(keys) == 0 {
		return b.SegmentAttention(q, k, v, e.bagOf)
	}
	ofBag := func(row *graph.Node) *graph.Node { return b.SegmentGather(row, e.bagOf) }
	score := func(key *graph.Node) *graph.Node {
		return b.Mul(b.Sum(b.Mul(q, key), true, 1), b.Scalar(graph.AttentionScale(q.Shape)))
	}
	guess := b.StopGrad(b.Sum(b.Mul(ofBag(e.bagMean(q)), k), true, 1))
	indicator := b.SegmentMaxMask(guess, e.bagOf)
	m, d := int(v.Shape[1]), int(k.Shape[1])
	averages := b.SegmentAttention(q, k, b.Concat(1, v, k, indicator), e.bagOf)
	weight := b.Maximum(b.Slice(averages, 1, m+d, m+d+1), b.Scalar(leastProbability))
	sum := b.Sub(score(ofBag(b.SegmentSum(b.Mul(indicator, k), e.bagOf))), b.Log(weight))
	scores := []*graph.Node{b.Maximum(sum, score(b.Slice(averages, 1, m, m+d)))}
	for _, key := range keys {
		scores = append(scores, score(ofBag(key)))
	}
	w := b.Softmax(b.Concat(1, scores...))
	out := b.Mul(column(b, w, 0), b.Slice(averages, 1, 0, m))
	for c, value := range values {
		out = b.Add(out, b.Mul(column(b, w, c+1), ofBag(value)))
	}
	return out
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

// bagScores multiplies the instances with the rows of the matrix of their bag, one row after the
// other.
func (e *expression) bagScores(x *ast.CallExpr, args []*graph.Node) (*graph.Node, error) {
	b, a, m := e.b, args[0], args[1]
	if err := e.wantInstances(x, a, 2); err != nil {
		return nil, err
	}
	if s := m.Shape; len(s) != 3 || s[0] != graph.B || s[2] != a.Shape[1] {
		return nil, e.errorf(x, "bag_scores needs instances [N, d] and a matrix [B, c, d] for each bag, they are %v and %v",
			a.Shape, s)
	}
	c, d := int(m.Shape[1]), int(m.Shape[2])
	rows := b.Reshape(m, graph.Shape{graph.B, graph.Dim(c * d)}) // onnx-go slices only matrices
	return e.columns(x, c, 1, func(c int) *graph.Node {
		row := b.Slice(rows, 1, c*d, (c+1)*d)
		return b.Sum(b.Mul(a, b.SegmentGather(row, e.bagOf)), true, 1)
	})
}

// columns joins count parts along an axis.
func (e *expression) columns(x *ast.CallExpr, count, axis int, part func(c int) *graph.Node) (*graph.Node, error) {
	if count > maxUnrolled {
		return nil, e.errorf(x, "%s takes at most %d columns, this has %d", written(x), maxUnrolled, count)
	}
	parts := make([]*graph.Node, count)
	for c := range parts {
		parts[c] = part(c)
	}
	return e.b.Concat(axis, parts...), nil
}

func column(b *graph.Builder, x *graph.Node, c int) *graph.Node { return b.Slice(x, 1, c, c+1) }

// bagTop marks the maximum of each bag n times. Marked instances get such a low value that they are
// marked again only in bags without others.
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
		rest = b.Sub(rest, b.Mul(found, b.Scalar(excluded)))
	}
	return top, nil
}

// dropoutOf lowers the function dropout.
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
func (e *expression) draws(x *ast.CallExpr, a *graph.Node, i int, drop func(rate float64) float64) (*graph.Node,
	error) {
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

// draw returns the mask of a call. An equation that losses and the update share is lowered once for
// each of them, with the same draws.
func (e *expression) draw(x *ast.CallExpr, shape graph.Shape, p float64) *graph.Node {
	key := fmt.Sprintf("%s%p", e.path, x)
	if e.maskOfCall[key] == nil {
		e.maskOfCall[key] = e.mask(e.numbered("dropout"), shape, p, written(x))
	}
	return e.maskOfCall[key]
}

func (e *expression) wantRandomRows(x *ast.CallExpr, a *graph.Node) error {
	if s := a.Shape; len(s) == 0 || !s[:1].Static() && s[0] != graph.N && s[0] != graph.B || !s[1:].Static() {
		return e.errorf(x, "%s needs one row per instance or bag, [N, ...] or [B, ...], or the shape of a parameter, not %v",
			written(x), s)
	}
	return nil
}

// uniform lowers uniform(x, ...) to a sum of random bits, because engines only draw masks.
func (e *expression) uniform(x *ast.CallExpr, args []*graph.Node) (*graph.Node, error) {
	prediction, err := e.setting(x, 1, 0, 1, false)
	if err == nil {
		err = e.wantRandomRows(x, args[0])
	}
	if err != nil || !e.training {
		return e.b.Fill(prediction, args[0].Shape), err
	}
	return e.uniformDraw(x, args[0]), nil
}

// uniformDraw gives numbers between 0 and 1 of the shape of a.
func (e *expression) uniformDraw(x *ast.CallExpr, a *graph.Node) *graph.Node {
	b := e.b
	width := int(a.Shape[1:].Elements(1, 1))
	bits := e.draw(x, graph.Shape{a.Shape[0], graph.Dim(uniformBits * width)}, 0.5) // 0 or 2
	sum := b.Scalar(math.Ldexp(1, -uniformBits-1))
	for i := range uniformBits {
		sum = b.Add(sum, b.Mul(b.Slice(bits, 1, i*width, (i+1)*width), b.Scalar(math.Ldexp(1, -i-2))))
	}
	return b.Reshape(sum, a.Shape)
}

// normal lowers normal(x) to the quantiles of uniform numbers.
func (e *expression) normal(x *ast.CallExpr, args []*graph.Node) (*graph.Node, error) {
	if err := e.wantRandomRows(x, args[0]); err != nil || !e.training {
		return e.b.Fill(0, args[0].Shape), err
	}
	return quantile(e.b, e.uniformDraw(x, args[0])), nil
}

// quantile returns the value of the standard normal distribution below which a share u of its
// values lies: sqrt(2) times the inverse error function of y = 2u - 1. The inverse error function
// is y times a polynomial of w = -ln(1 - y^2), one for w up to 5 and another above (Giles,
// "Approximating the erfinv function", GPU Computing Gems, 2011).
func quantile(b *graph.Builder, u *graph.Node) *graph.Node {
	y := b.Sub(b.Mul(b.Scalar(2), u), b.Scalar(1))
	w := b.Neg(b.Log(b.Mul(b.Scalar(4), b.Mul(u, b.Sub(b.Scalar(1), u))))) // 1 - y^2 without cancellation
	polynomial := func(v *graph.Node, coefficients []float64) *graph.Node {
		sum := b.Scalar(coefficients[0])
		for _, c := range coefficients[1:] {
			sum = b.Add(b.Mul(sum, v), b.Scalar(c))
		}
		return sum
	}
	tail := b.Greater(w, b.Scalar(5))
	inner := polynomial(b.Sub(w, b.Scalar(2.5)), erfinvInner)
	outer := polynomial(b.Sub(b.Sqrt(w), b.Scalar(3)), erfinvOuter)
	ratio := b.Add(inner, b.Mul(tail, b.Sub(outer, inner)))
	return b.Mul(b.Scalar(math.Sqrt2), b.Mul(y, ratio))
}

// Coefficients of the inverse error function over its argument, highest power first.
var (
	erfinvInner = []float64{2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087,
		-0.00125372503, -0.00417768164, 0.246640727, 1.50140941}
	erfinvOuter = []float64{-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773,
		-0.0076224613, 0.00943887047, 1.00167406, 2.83297682}
)
