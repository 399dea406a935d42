// Machines compute alike with padding, shared parameters and any number of processors.

package gorgonia_test

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/miplc/miplc/compile/gorgonia"
	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/ndarray"
	"golang.org/x/sync/errgroup"
)

// At kinks, gradients follow the definitions in the op table.
func TestGradientsAtKinks(t *testing.T) {
	four := []float64{0, 1, 1, -1}
	cases := []struct {
		name  string
		x     []float64
		want  []float64
		build func(b *graph.Builder, x *graph.Node) *graph.Node
	}{
		{"relu at 0", four, []float64{0, 1, 1, 0}, func(b *graph.Builder, x *graph.Node) *graph.Node { return b.Relu(x) }},
		{"abs at 0", four, []float64{0, 1, 1, -1}, func(b *graph.Builder, x *graph.Node) *graph.Node { return b.Abs(x) }},
		{"clamp at its bounds", []float64{0, 1, 1.5, -0.5}, []float64{1, 1, 0, 0}, func(b *graph.Builder,
			x *graph.Node) *graph.Node {
			return b.Clamp(x, 0, 1)
		}},
		{"max of ties", four, []float64{0, 1, 0, 0}, func(b *graph.Builder, x *graph.Node) *graph.Node {
			return b.Max(x, false, 0)
		}},
		{"maximum of ties", four, []float64{0.5, 1, 1, 0}, func(b *graph.Builder, x *graph.Node) *graph.Node {
			return b.Maximum(b.Scalar(0), x)
		}},
		{"minimum of ties", four, []float64{1, 0.5, 0.5, 1}, func(b *graph.Builder, x *graph.Node) *graph.Node {
			return b.Minimum(x, b.Scalar(1))
		}},
		{"stop gradient", four, []float64{0, 1, 1, -1}, func(b *graph.Builder, x *graph.Node) *graph.Node {
			return b.Mul(x, b.StopGrad(x))
		}},
		{"max pool of ties", four, []float64{0, 1, 0, 0}, func(b *graph.Builder, x *graph.Node) *graph.Node {
			return b.MaxPool2D(b.Reshape(x, graph.Shape{1, 1, 2, 2}), [2]int{2, 2}, [2]int{2, 2})
		}},
		{"max pool of a blank", []float64{0, 0, 0, 0}, []float64{1, 0, 0, 0}, func(b *graph.Builder,
			x *graph.Node) *graph.Node {
			return b.MaxPool2D(b.Reshape(x, graph.Shape{1, 1, 2, 2}), [2]int{2, 2}, [2]int{2, 2})
		}},
	}
	for _, c := range cases {
		b := graph.NewBuilder("kink")
		y := c.build(b, b.Param("x", graph.Shape{4}))
		axes := make([]int, len(y.Shape))
		for i := range axes {
			axes[i] = i
		}
		b.Output("loss", b.Sum(y, false, axes...))
		g, err := b.Graph()
		if err != nil {
			t.Fatal(err)
		}
		m, grads, _ := lower[float32](t, g, map[string]*graph.Tensor{"x": graph.NewTensor([]int{4}, c.x...)}, 1, 1)
		if err := m.Run(gorgonia.Feed[float32]{}); err != nil {
			t.Fatal(err)
		}
		compare(t, c.name, grads["x"], c.want, 0)
	}
}

// demipl returns a small version of the paper's model: gates, attention, pooling, losses.
func demipl(s *sheet) *graph.Graph {
	x := s.Input("X", graph.Float, graph.Shape{n, 4})
	s.values["X"] = graph.NewTensor([]int{testN, 4}, s.draw(4*testN)...)
	gate := s.Mul(s.Tanh(s.Add(s.MatMul(x, s.x(4, 3)), s.x(3))), s.Sigmoid(s.Add(s.MatMul(x, s.x(4, 3)), s.x(3))))
	la := s.Neg(s.Softplus(s.Neg(s.MatMul(gate, s.x(3, 1)))))
	a := s.Exp(la)
	z := s.SegmentSum(s.Mul(s.SegmentSoftmax(la, s.bagOf), x), s.bagOf)
	logp := s.LogSoftmax(s.Add(s.MatMul(z, s.x(4, 3)), s.x(3)))
	p := s.Exp(logp)
	w := s.StopGrad(s.Div(p, s.Sum(p, true, 1)))
	entropy := s.Sum(s.SegmentSum(s.Mul(a, la), s.bagOf), false, 0, 1)
	s.Output("loss", s.Sub(s.Mul(s.Scalar(0.1), s.Neg(entropy)), s.Sum(s.Mul(w, logp), false, 0, 1)))
	s.Output("p", p)
	s.Output("a", a)
	g, err := s.Graph()
	if err != nil {
		panic(err)
	}
	return g
}

// Padding changes results and gradients by rounding at most, whatever its values are.
func TestPaddingReachesNoBag(t *testing.T) {
	s := newSheet(1)
	g := demipl(s)
	var real []int
	for i, bag := range testBagOf {
		if bag >= 0 {
			real = append(real, i)
		}
	}
	padded, gradPadded, _ := lower[float64](t, g, s.values, testN, testB)
	plain, gradPlain, _ := lower[float64](t, g, s.values, len(real), testB)
	in := inputs[float64](s.values)
	if err := padded.Run(in); err != nil {
		t.Fatal(err)
	}
	small := gorgonia.Feed[float64]{Floats: map[string][]float64{}}
	for _, i := range real {
		small.BagOf = append(small.BagOf, testBagOf[i])
		small.Floats["X"] = append(small.Floats["X"], in.Floats["X"][4*i:4*i+4]...)
	}
	if err := plain.Run(small); err != nil {
		t.Fatal(err)
	}
	compare(t, "loss", padded.Output("loss"), plain.Output("loss"), 1e-14)
	compare(t, "p", padded.Output("p"), plain.Output("p"), 1e-14)
	for name := range gradPlain {
		compare(t, name, gradPadded[name], gradPlain[name], 1e-14)
	}
}

// NaN and infinite inputs are propagated without a panic.
func TestNotFiniteInputs(t *testing.T) {
	for i, c := range opCases {
		for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
			s := newSheet(uint64(i))
			g := s.finish(t, c.build(s))
			for _, p := range s.params {
				s.values[p].Data[0] = bad
			}
			m, _, _ := lower[float32](t, g, s.values, testN, testB)
			if err := m.Run(inputs[float32](s.values)); err != nil {
				t.Errorf("%s with %v: %v", c.name, bad, err)
			}
		}
	}
}

// A parameter that does not affect the loss has the gradient 0.
func TestUnusedParameterHasZeroGradient(t *testing.T) {
	b := graph.NewBuilder("unused")
	x, u, v := b.Param("x", graph.Shape{2}), b.Param("u", graph.Shape{2}), b.Param("v", graph.Shape{2})
	b.Output("loss", b.Sum(b.Mul(x, b.StopGrad(u)), false, 0))
	b.Output("other", b.Exp(v))
	g, err := b.Graph()
	if err != nil {
		t.Fatal(err)
	}
	pair := func(v ...float64) *graph.Tensor { return graph.NewTensor([]int{2}, v...) }
	params, grads := map[string][]float64{}, map[string][]float64{}
	for name, v := range map[string]*graph.Tensor{"x": pair(1, 2), "u": pair(3, 4), "v": pair(5, 6)} {
		params[name] = v.Data
		grads[name] = []float64{9, 9}
	}
	m, err := gorgonia.Lower(g, 1, 1, gorgonia.Lowering[float64]{Params: params, Loss: "loss", Grads: grads})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Run(gorgonia.Feed[float64]{}); err != nil {
		t.Fatal(err)
	}
	compare(t, "x", grads["x"], []float64{3, 4}, 0)
	compare(t, "u", grads["u"], []float64{0, 0}, 0)
	compare(t, "v", grads["v"], []float64{0, 0}, 0)
}

// Programs that are differentiated at the same time share nothing. The race detector sees it if this test runs alone,
// because only the first differentiation of a process wrote to gorgonia's constant.
func TestProgramsAtOnce(t *testing.T) {
	b := graph.NewBuilder("small")
	b.Output("loss", b.Sum(b.Mul(b.Param("x", graph.Shape{2}), b.Scalar(3)), false, 0))
	g, err := b.Graph()
	if err != nil {
		t.Fatal(err)
	}
	var group errgroup.Group
	for range 4 {
		group.Go(func() error {
			grads := map[string][]float32{"x": {9, 9}}
			m, err := gorgonia.Lower(g, 1, 1, gorgonia.Lowering[float32]{
				Params: map[string][]float32{"x": {1, 2}}, Loss: "loss", Grads: grads})
			if err != nil {
				return err
			}
			if err := m.Run(gorgonia.Feed[float32]{}); err != nil {
				return err
			}
			if !slices.Equal(grads["x"], []float32{3, 3}) {
				return fmt.Errorf("gradient %v", grads["x"])
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
}

// Machines of different sizes that share parameters do not affect each other.
func TestSharedParameters(t *testing.T) {
	s := newSheet(2)
	g := demipl(s)
	params := paramsOf(s)
	var machines []*gorgonia.Machine[float32]
	var wants [][]float64
	for size := 1; size <= testN; size += 3 {
		m, err := gorgonia.Lower(g, size, 1, gorgonia.Lowering[float32]{Params: params})
		if err != nil {
			t.Fatal(err)
		}
		machines = append(machines, m)
		s.values["bag_of"] = graph.NewInts(make([]int, size)...)
		x := *s.values["X"]
		s.values["X"] = graph.NewTensor([]int{size, 4}, x.Data[:4*size]...)
		wants = append(wants, eval(t, g, size, 1, s.values)["p"].Data)
		s.values["X"] = &x
	}
	for range 3 {
		for i, m := range machines {
			size := 1 + 3*i
			in := gorgonia.Feed[float32]{BagOf: make([]int, size), Floats: map[string][]float32{
				"X": ndarray.Convert[float32](s.values["X"].Data[:4*size])}}
			if err := m.Run(in); err != nil {
				t.Fatal(err)
			}
			compare(t, "p", m.Output("p"), wants[i], 1e-6)
		}
	}
}

func TestErrorsName(t *testing.T) {
	s := newSheet(3)
	g := demipl(s)
	params := map[string][]float32{}
	lowering := func(n, b int, o gorgonia.Lowering[float32]) error {
		_, err := gorgonia.Lower(g, n, b, o)
		return err
	}
	expect := func(err error, words ...string) {
		t.Helper()
		for _, w := range words {
			if err == nil || !strings.Contains(err.Error(), w) {
				t.Errorf("error %v does not say %q", err, w)
			}
		}
	}
	expect(lowering(0, 1, gorgonia.Lowering[float32]{}), "at least one instance")
	expect(lowering(2, 1, gorgonia.Lowering[float32]{Params: params}), "p0", "0 elements")
	params["p0"] = make([]float32, 11)
	expect(lowering(2, 1, gorgonia.Lowering[float32]{Params: params}), "p0", "11", "[4 3]")
	for _, p := range s.params {
		params[p] = ndarray.Convert[float32](s.values[p].Data)
	}
	expect(lowering(2, 1, gorgonia.Lowering[float32]{Params: params, Loss: "p"}), "p", "scalar")
	expect(lowering(2, 1, gorgonia.Lowering[float32]{Params: params, Loss: "q"}), "no output q")
	m, err := gorgonia.Lower(g, 2, 1, gorgonia.Lowering[float32]{Params: params})
	if err != nil {
		t.Fatal(err)
	}
	expect(m.Run(gorgonia.Feed[float32]{BagOf: []int{0, 0}}), "X", "missing")
	x := map[string][]float32{"X": make([]float32, 7)}
	expect(m.Run(gorgonia.Feed[float32]{BagOf: []int{0, 0}, Floats: x}), "X", "7", "8")
	x["X"] = make([]float32, 8)
	expect(m.Run(gorgonia.Feed[float32]{BagOf: []int{0}, Floats: x}), "bag_of", "1", "2")
	expect(m.Run(gorgonia.Feed[float32]{BagOf: []int{0, 1}, Floats: x}), "instance 1", "bag 1")
	if err := m.Run(gorgonia.Feed[float32]{BagOf: []int{0, -1}, Floats: x}); err != nil {
		t.Error(err)
	}
	if m.Output("nothing") != nil {
		t.Error("an output that does not exist has a value")
	}
}

// The number of processors does not change the result, bit for bit.
func TestSameBitsOnAnyNumberOfProcessors(t *testing.T) {
	s := newSheet(4)
	build := s.Conv2D(s.x(n, 3, 20, 20), s.x(8, 3, 5, 5), [2]int{1, 1}, [2]int{2, 2})
	g := s.finish(t, s.MaxPool2D(s.Tanh(build), [2]int{2, 2}, [2]int{2, 2}))
	var first map[string][]float32
	for _, procs := range []int{1, 2, 3, 5} {
		old := runtime.GOMAXPROCS(procs)
		m, grads, _ := lower[float32](t, g, s.values, testN, testB)
		err := m.Run(inputs[float32](s.values))
		runtime.GOMAXPROCS(old)
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = grads
		}
		for name := range grads {
			if !slices.Equal(grads[name], first[name]) {
				t.Errorf("%d processors: gradient of %s differs", procs, name)
			}
		}
	}
}

// Building, running and dropping machines leaks neither goroutines nor memory.
func TestMachinesAreFreed(t *testing.T) {
	s := newSheet(5)
	g := demipl(s)
	in := inputs[float32](s.values)
	heap := func() (bytes uint64, goroutines int) {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc, runtime.NumGoroutine()
	}
	use := func(count int) {
		for range count {
			params, grads := paramsOf(s), map[string][]float32{"p0": make([]float32, 12)}
			m, err := gorgonia.Lower(g, testN, testB, gorgonia.Lowering[float32]{Params: params, Loss: "loss", Grads: grads})
			if err != nil {
				t.Fatal(err)
			}
			for range 3 {
				if err := m.Run(in); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	use(20)
	before, goroutines := heap()
	use(200)
	after, now := heap()
	if now > goroutines+1 {
		t.Errorf("%d goroutines before, %d after", goroutines, now)
	}
	if grown := int64(after) - int64(before); grown > 4<<20 {
		t.Errorf("200 machines left %d bytes", grown)
	}
}

func paramsOf(s *sheet) map[string][]float32 {
	params := map[string][]float32{}
	for _, p := range s.params {
		params[p] = ndarray.Convert[float32](s.values[p].Data)
	}
	return params
}
