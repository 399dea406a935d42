// Cases of each op for the tests of this package.

package gorgonia_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/miplc/miplc/compile/gorgonia"
	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/ndarray"
)

// The batch of the op tests has three ragged bags and two padding instances.
var (
	testBagOf = []int{0, 0, 1, -1, 1, 1, 2, -1}
	testN     = len(testBagOf)
	testB     = 3
)

// sheet builds a test graph. It is a graph builder with differentiable sources, also of symbolic
// shape, and their values.
type sheet struct {
	*graph.Builder
	rng    *rand.Rand
	values map[string]*graph.Tensor
	params []string
	bagOf  *graph.Node
	lo, hi float64 // range of the values of the next sources
}

func newSheet(seed uint64) *sheet {
	s := &sheet{
		Builder: graph.NewBuilder("test"), rng: rand.New(rand.NewPCG(seed, 1)),
		values: map[string]*graph.Tensor{"bag_of": graph.NewInts(testBagOf...)}, lo: -2, hi: 2,
	}
	s.bagOf = s.Input("bag_of", graph.Int, graph.Shape{graph.N})
	return s
}

func (s *sheet) between(lo, hi float64) *sheet { s.lo, s.hi = lo, hi; return s }

// draw returns random numbers at least 0.01 away from any multiple of 0.5, so that no difference
// quotient crosses a kink.
func (s *sheet) draw(n int) []float64 {
	data := make([]float64, n)
	for i := range data {
		for {
			data[i] = s.lo + (s.hi-s.lo)*s.rng.Float64()
			if r := 2*data[i] - float64(int(2*data[i])); r > 0.02 && r < 0.98 || r < -0.02 && r > -0.98 {
				break
			}
		}
	}
	return data
}

// x returns a node of the given shape that depends on a parameter. A symbolic shape is the
// product of an identity matrix, given as an input, with the parameter.
func (s *sheet) x(shape ...graph.Dim) *graph.Node {
	concrete := graph.Shape(shape).Concrete(testN, testB)
	size := ndarray.Size(concrete)
	name := fmt.Sprintf("p%d", len(s.params))
	s.params = append(s.params, name)
	static := make(graph.Shape, len(concrete))
	for i, d := range concrete {
		static[i] = graph.Dim(d)
	}
	if graph.Shape(shape).Static() {
		s.values[name] = graph.NewTensor(concrete, s.draw(size)...)
		return s.Param(name, static)
	}
	rows := concrete[0]
	flat := graph.Shape{graph.Dim(rows), graph.Dim(size / rows)}
	s.values[name] = graph.NewTensor(flat.Concrete(0, 0), s.draw(size)...)
	unit := graph.NewTensor([]int{rows, rows})
	for i := range rows {
		unit.Data[i*rows+i] = 1
	}
	s.values["unit "+name] = unit
	p := s.MatMul(s.Input("unit "+name, graph.Float, graph.Shape{shape[0], graph.Dim(rows)}), s.Param(name, flat))
	return s.Reshape(p, graph.Shape(shape))
}

// finish adds a scalar loss that depends on every element of y with a different weight and
// returns the graph.
func (s *sheet) finish(t *testing.T, y *graph.Node) *graph.Graph {
	t.Helper()
	shape := y.Shape.Concrete(testN, testB)
	size := ndarray.Size(shape)
	s.lo, s.hi = -1, 1
	s.values["weights"] = graph.NewTensor(shape, s.draw(size)...)
	axes := make([]int, len(shape))
	for i := range axes {
		axes[i] = i
	}
	s.Output("y", y)
	s.Output("loss", s.Sum(s.Mul(y, s.Input("weights", graph.Float, y.Shape)), false, axes...))
	g, err := s.Graph()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// opCase builds the part of a graph that a test checks.
type opCase struct {
	name  string
	flat  bool // piecewise constant: the gradient is not compared
	build func(s *sheet) *graph.Node
}

const (
	n = graph.N
	b = graph.B
)

var opCases = slices.Concat(elementwiseCases, broadcastCases, matrixCases, segmentCases, imageCases, fanCases)

var elementwiseCases = []opCase{
	{"neg", false, func(s *sheet) *graph.Node { return s.Neg(s.x(n, 3)) }},
	{"exp", false, func(s *sheet) *graph.Node { return s.Exp(s.x(n, 3)) }},
	{"log", false, func(s *sheet) *graph.Node { return s.Log(s.between(0.1, 3).x(n, 3)) }},
	{"sqrt", false, func(s *sheet) *graph.Node { return s.Sqrt(s.between(0.1, 3).x(n, 3)) }},
	{"abs", false, func(s *sheet) *graph.Node { return s.Abs(s.x(n, 3)) }},
	{"sign", true, func(s *sheet) *graph.Node { return s.Sign(s.x(n, 3)) }},
	{"tanh", false, func(s *sheet) *graph.Node { return s.Tanh(s.x(n, 3)) }},
	{"tanh near zero", false, func(s *sheet) *graph.Node { return s.Tanh(s.Mul(s.x(n, 3), s.Scalar(0.02))) }},
	{"tanh saturated", false, func(s *sheet) *graph.Node { return s.Tanh(s.between(-60, 60).x(n, 3)) }},
	{"sigmoid", false, func(s *sheet) *graph.Node { return s.Sigmoid(s.x(n, 3)) }},
	{"sigmoid saturated", false, func(s *sheet) *graph.Node { return s.Sigmoid(s.between(-60, 60).x(n, 3)) }},
	{"softplus", false, func(s *sheet) *graph.Node { return s.Softplus(s.x(n, 3)) }},
	{"softplus saturated", false, func(s *sheet) *graph.Node { return s.Softplus(s.between(-60, 60).x(n, 3)) }},
	{"relu", false, func(s *sheet) *graph.Node { return s.Relu(s.x(n, 3)) }},
	{"clamp", false, func(s *sheet) *graph.Node { return s.Clamp(s.x(n, 3), -0.5, 1) }},
	{"stop gradient", false, func(s *sheet) *graph.Node {
		x := s.x(n, 3)
		return s.Mul(x, s.Exp(s.StopGrad(s.Mul(s.Scalar(0), x)))) // the stopped factor is constant
	}},
	{"softmax", false, func(s *sheet) *graph.Node { return s.Softmax(s.x(n, 4)) }},
	{"softmax large", false, func(s *sheet) *graph.Node { return s.Softmax(s.between(-60, 60).x(n, 4)) }},
	{"log softmax", false, func(s *sheet) *graph.Node { return s.LogSoftmax(s.x(n, 4)) }},
	{"log softmax of both", false, func(s *sheet) *graph.Node {
		x := s.x(b, 4)
		return s.Add(s.Softmax(x), s.LogSoftmax(x))
	}},
	{"softmax of images", false, func(s *sheet) *graph.Node { return s.Softmax(s.x(n, 2, 3, 4)) }},
}

var broadcastCases = []opCase{
	{"add", false, func(s *sheet) *graph.Node { return s.Add(s.x(n, 3), s.x(n, 3)) }},
	{"add row", false, func(s *sheet) *graph.Node { return s.Add(s.x(n, 3), s.x(3)) }},
	{"add column", false, func(s *sheet) *graph.Node { return s.Add(s.x(n, 1), s.x(n, 3)) }},
	{"add outer", false, func(s *sheet) *graph.Node { return s.Add(s.x(n, 1), s.x(1, 4)) }},
	{"add scalar", false, func(s *sheet) *graph.Node { return s.Add(s.x(), s.x(n, 3)) }},
	{"add scalars", false, func(s *sheet) *graph.Node { return s.Add(s.x(), s.x()) }},
	{"add channel", false, func(s *sheet) *graph.Node { return s.Add(s.x(n, 2, 3, 4), s.x(2, 1, 1)) }},
	{"sub", false, func(s *sheet) *graph.Node { return s.Sub(s.x(n, 3), s.x(n, 3)) }},
	{"sub from row", false, func(s *sheet) *graph.Node { return s.Sub(s.x(3), s.x(n, 3)) }},
	{"sub scalar", false, func(s *sheet) *graph.Node { return s.Sub(s.x(n, 3), s.x()) }},
	{"sub from scalar", false, func(s *sheet) *graph.Node { return s.Sub(s.x(), s.x(n, 3)) }},
	{"mul", false, func(s *sheet) *graph.Node { return s.Mul(s.x(n, 3), s.x(n, 3)) }},
	{"mul self", false, func(s *sheet) *graph.Node { x := s.x(n, 3); return s.Mul(x, x) }},
	{"mul column", false, func(s *sheet) *graph.Node { return s.Mul(s.x(n, 3), s.x(n, 1)) }},
	{"mul middle", false, func(s *sheet) *graph.Node { return s.Mul(s.x(n, 2, 3, 4), s.x(n, 1, 3, 1)) }},
	{"mul both ways", false, func(s *sheet) *graph.Node { return s.Mul(s.x(n, 1, 3), s.x(4, 1)) }},
	{"div", false, func(s *sheet) *graph.Node { return s.Div(s.x(n, 3), s.between(0.2, 3).x(n, 3)) }},
	{"div by row", false, func(s *sheet) *graph.Node { return s.Div(s.x(n, 3), s.between(0.2, 3).x(3)) }},
	{"div of scalar", false, func(s *sheet) *graph.Node { return s.Div(s.x(), s.between(0.2, 3).x(n, 3)) }},
	{"div by scalar", false, func(s *sheet) *graph.Node { return s.Div(s.x(n, 3), s.between(0.2, 3).x()) }},
	{"maximum", false, func(s *sheet) *graph.Node { return s.Maximum(s.x(n, 3), s.x(n, 1)) }},
	{"minimum", false, func(s *sheet) *graph.Node { return s.Minimum(s.x(3), s.x(n, 3)) }},
	{"maximum of scalar", false, func(s *sheet) *graph.Node { return s.Maximum(s.x(n, 3), s.Scalar(0.5)) }},
	{"greater", true, func(s *sheet) *graph.Node { return s.Greater(s.x(n, 3), s.x(n, 1)) }},
	{"greater or equal", true, func(s *sheet) *graph.Node { return s.GreaterOrEqual(s.x(n, 3), s.x(n, 1)) }},
	{"fill", false, func(s *sheet) *graph.Node { return s.Mul(s.Fill(1.5, graph.Shape{n, 2}), s.x(n, 2)) }},
}

var matrixCases = []opCase{
	{"matmul", false, func(s *sheet) *graph.Node { return s.MatMul(s.x(n, 3), s.x(3, 4)) }},
	{"matmul column", false, func(s *sheet) *graph.Node { return s.MatMul(s.x(n, 3), s.x(3, 1)) }},
	{"transpose", false, func(s *sheet) *graph.Node { return s.Transpose(s.x(n, 3), 1, 0) }},
	{"transpose images", false, func(s *sheet) *graph.Node { return s.Transpose(s.x(n, 2, 3, 4), 2, 0, 3, 1) }},
	{"gram", false, func(s *sheet) *graph.Node { x := s.x(n, 3); return s.MatMul(s.Transpose(x, 1, 0), x) }},
	{"reshape", false, func(s *sheet) *graph.Node { return s.Reshape(s.x(n, 4, 3), graph.Shape{n, 12}) }},
	{"expand row", false, func(s *sheet) *graph.Node { return s.Expand(s.x(3), graph.Shape{n, 3}) }},
	{"expand column", false, func(s *sheet) *graph.Node { return s.Expand(s.x(n, 1), graph.Shape{n, 3}) }},
	{"expand scalar", false, func(s *sheet) *graph.Node { return s.Expand(s.x(), graph.Shape{b, 2}) }},
	{"sum all", false, func(s *sheet) *graph.Node { return s.Sum(s.x(n, 3), false, 0, 1) }},
	{"sum rows", false, func(s *sheet) *graph.Node { return s.Sum(s.x(n, 3), true, 1) }},
	{"sum columns", false, func(s *sheet) *graph.Node { return s.Sum(s.x(n, 3), false, 0) }},
	{"sum middle", false, func(s *sheet) *graph.Node { return s.Sum(s.x(n, 2, 3, 4), false, 1, 3) }},
	{"max all", false, func(s *sheet) *graph.Node { return s.Max(s.x(n, 3), false, 0, 1) }},
	{"max rows", false, func(s *sheet) *graph.Node { return s.Max(s.x(n, 3), true, 1) }},
	{"max columns", false, func(s *sheet) *graph.Node { return s.Max(s.x(n, 3), false, 0) }},
	{"max middle", false, func(s *sheet) *graph.Node { return s.Max(s.x(n, 2, 3, 4), true, 2) }},
	{"max mask", true, func(s *sheet) *graph.Node { return s.MaxMask(s.x(n, 2, 3, 4), 0, 2) }},
	{"concat", false, func(s *sheet) *graph.Node { return s.Concat(1, s.x(n, 3), s.x(n, 1), s.x(n, 2)) }},
	{"concat inner", false, func(s *sheet) *graph.Node { return s.Concat(1, s.x(n, 2, 3), s.x(n, 1, 3)) }},
	{"slice", false, func(s *sheet) *graph.Node { return s.Slice(s.x(n, 5), 1, 1, 4) }},
	{"slice inner", false, func(s *sheet) *graph.Node { return s.Slice(s.x(n, 5, 2), 1, 0, 2) }},
	{"pad", false, func(s *sheet) *graph.Node { return s.Pad(s.x(n, 2, 2), 1, 1, 2) }},
}

var segmentCases = []opCase{
	{"segment sum", false, func(s *sheet) *graph.Node { return s.SegmentSum(s.x(n, 3), s.bagOf) }},
	{"segment sum vector", false, func(s *sheet) *graph.Node { return s.SegmentSum(s.x(n), s.bagOf) }},
	{"segment max", false, func(s *sheet) *graph.Node { return s.SegmentMax(s.x(n, 3), s.bagOf) }},
	{"segment max mask", true, func(s *sheet) *graph.Node { return s.SegmentMaxMask(s.x(n, 3), s.bagOf) }},
	{"segment softmax", false, func(s *sheet) *graph.Node { return s.SegmentSoftmax(s.x(n, 2), s.bagOf) }},
	{"segment softmax large", false, func(s *sheet) *graph.Node {
		return s.SegmentSoftmax(s.between(-60, 60).x(n, 1), s.bagOf)
	}},
	{"segment gather", false, func(s *sheet) *graph.Node { return s.SegmentGather(s.x(b, 3), s.bagOf) }},
}

var imageCases = []opCase{
	{"conv", false, func(s *sheet) *graph.Node {
		return s.Conv2D(s.x(n, 2, 5, 6), s.x(3, 2, 3, 2), [2]int{1, 1}, [2]int{0, 0})
	}},
	{"conv stride and pad", false, func(s *sheet) *graph.Node {
		return s.Conv2D(s.x(n, 2, 5, 6), s.x(3, 2, 3, 3), [2]int{2, 3}, [2]int{1, 2})
	}},
	{"conv wide pad", false, func(s *sheet) *graph.Node {
		return s.Conv2D(s.x(n, 1, 3, 3), s.x(2, 1, 2, 2), [2]int{1, 2}, [2]int{3, 3})
	}},
	{"conv taps outside", false, func(s *sheet) *graph.Node {
		return s.Conv2D(s.x(n, 1, 1, 2), s.x(2, 1, 5, 7), [2]int{1, 1}, [2]int{2, 3})
	}},
	{"max pool", false, func(s *sheet) *graph.Node {
		return s.MaxPool2D(s.x(n, 2, 4, 6), [2]int{2, 2}, [2]int{2, 2})
	}},
	{"max pool overlapping", false, func(s *sheet) *graph.Node {
		return s.MaxPool2D(s.x(n, 2, 5, 6), [2]int{3, 2}, [2]int{1, 3})
	}},
}

// fanCases use values more than once, so that gorgonia must add gradients.
var fanCases = []opCase{
	{"two uses", false, func(s *sheet) *graph.Node {
		x := s.x(n, 3)
		y := s.Exp(x)
		return s.Add(s.Mul(x, y), s.Add(y, s.Tanh(y)))
	}},
	{"gradient handed on twice", false, func(s *sheet) *graph.Node {
		x, w := s.x(n, 4), s.x(n, 4)
		sum := s.Add(s.Add(x, w), s.Reshape(s.Reshape(x, graph.Shape{n, 2, 2}), graph.Shape{n, 4}))
		return s.Add(s.Mul(w, x), s.Add(sum, s.Add(w, s.Add(x, sum))))
	}},
	{"scalar used often", false, func(s *sheet) *graph.Node {
		c := s.x()
		return s.Mul(s.Add(s.Mul(c, s.x(n, 2)), c), s.Exp(c))
	}},
	{"one element", false, func(s *sheet) *graph.Node {
		c := s.x(1, 1)
		d := s.Mul(c, c)
		return s.Add(s.Add(d, c), s.Exp(d))
	}},
	{"parameter used thrice", false, func(s *sheet) *graph.Node {
		w, x := s.x(3, 3), s.x(n, 3)
		return s.MatMul(s.Tanh(s.MatMul(s.Tanh(s.MatMul(x, w)), w)), w)
	}},
}

// lower builds a machine with gradients of every parameter of the sheet.
func lower[T gorgonia.Float](t testing.TB, g *graph.Graph, values map[string]*graph.Tensor, rows,
	bags int) (*gorgonia.Machine[T], map[string][]T, map[string][]T) {
	t.Helper()
	params, grads := map[string][]T{}, map[string][]T{}
	for _, p := range g.ByOp(graph.OpParam) {
		v := values[p.Name]
		params[p.Name] = ndarray.Convert[T](v.Data)
		grads[p.Name] = make([]T, len(v.Data))
	}
	m, err := gorgonia.Lower(g, rows, bags, gorgonia.Lowering[T]{Params: params, Loss: "loss", Grads: grads})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m, grads, params
}

// inputs converts the values of a sheet.
func inputs[T gorgonia.Float](values map[string]*graph.Tensor) gorgonia.Feed[T] {
	in := gorgonia.Feed[T]{Floats: map[string][]T{}}
	for name, v := range values {
		if v.Ints != nil {
			in.BagOf = v.Ints
		} else {
			in.Floats[name] = ndarray.Convert[T](v.Data)
		}
	}
	return in
}
