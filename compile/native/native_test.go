// Plans compared with the interpreter: every op, random graphs and their gradients.

package native

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/miplc/miplc/compile/native/kernel"
	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/internal/testkit/enginetest"
	"github.com/miplc/miplc/internal/testkit/modeltest"
)

// batchOf are the sizes of a batch: the bag of each instance ascends from 0.
func batchOf(env graph.Env) []int { return env.Values["bag_of"].Ints }

// planned reports whether plans are made for a case: every instance is in a bag, and bags are not mixed, as in the
// batches of engines.
func planned(c *modeltest.Case) bool { return !c.Padded && !c.Unsorted }

// evaluate runs the plan of a graph and returns copies of the outputs.
func evaluate(t testing.TB, g *graph.Graph, env graph.Env, o Options) map[string][]float32 {
	t.Helper()
	o.Memory = NewMemory()
	p, err := Compile(g, env.N, env.B, o)
	if err != nil {
		t.Fatal(err)
	}
	for name, v := range env.Values {
		if v.Ints != nil {
			continue
		}
		if err := p.Input(name).Bind(ndarray.Convert[float32](v.Data)); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.SetBags(batchOf(env)); err != nil {
		t.Fatal(err)
	}
	out := map[string][]float32{}
	for range 2 { // a second run finds the values of the first one in its memory
		p.Run()
		for _, o := range g.Outputs {
			out[o.Name] = slices.Clone(p.Output(o.Name))
		}
	}
	return out
}

// options returns those that must give the same bits: each set of kernels, and operations divided among threads.
func options() map[string]Options {
	all := map[string]Options{}
	for _, set := range kernel.Sets() {
		all[set.Name] = Options{Kernels: set}
	}
	for _, threads := range []int{2, 5} {
		all[fmt.Sprint(threads, " threads")] = Options{Kernels: kernel.Sets()[0], Threads: threads, small: 8}
	}
	return all
}

// compare evaluates a graph with all options, and with the interpreter.
func compare(t *testing.T, g *graph.Graph, env graph.Env, tolerance float64) {
	t.Helper()
	rounded := graph.Env{N: env.N, B: env.B, Values: map[string]*graph.Tensor{}}
	for name, v := range env.Values {
		rounded.Values[name] = v
		if v.Ints == nil {
			rounded.Values[name] = graph.NewTensor(v.Shape, ndarray.Convert[float64](ndarray.Convert[float32](v.Data))...)
		}
	}
	want, err := graph.Eval(g, rounded)
	if err != nil {
		t.Fatal(err)
	}
	var first map[string][]float32
	for what, o := range options() {
		got := evaluate(t, g, env, o)
		for name, w := range want {
			tensor := graph.NewTensor(w.Shape, ndarray.Convert[float64](got[name])...)
			if err := enginetest.Near(name, tensor, w, tolerance); err != nil {
				t.Errorf("%s: %v", what, err)
			}
		}
		if first == nil {
			first = got
		} else if err := sameBits(got, first); err != nil {
			t.Errorf("%s has other bits: %v", what, err)
		}
	}
}

func sameBits(a, b map[string][]float32) error {
	for _, name := range slices.Sorted(maps.Keys(a)) {
		for i, v := range a[name] {
			if w := b[name][i]; math.Float32bits(v) != math.Float32bits(w) && (v == v || w == w) {
				return fmt.Errorf("element %d of %s: %v and %v", i, name, v, w)
			}
		}
	}
	return nil
}

// Functions of one number without a kernel have the values of their Go functions.
func TestFunctionsWithoutKernel(t *testing.T) {
	kernels := maps.Clone(lowerings)
	defer func() { lowerings = kernels }()
	lowerings = maps.Clone(kernels)
	for _, op := range graph.AllOps() {
		if f := op.Function(); f != nil {
			lowerings[op] = called(f)
		}
	}
	for _, c := range modeltest.Cases() {
		if c.Op.Function() != nil && planned(&c) {
			t.Run(c.Name, func(t *testing.T) { compare(t, c.Graph, c.Env, 1e-6) })
		}
	}
}

func TestSharedCases(t *testing.T) {
	for _, c := range modeltest.Cases() {
		if !planned(&c) {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			g := c.Graph
			if c.Differentiable {
				var err error
				if g, err = graph.Gradient(g, "loss", c.Wrt); err != nil {
					t.Fatal(err)
				}
			}
			compare(t, g, c.Env, 1e-5)
		})
	}
}

// TestEveryOpHasCases guards against a case that is left out because of its batch.
func TestEveryOpHasCases(t *testing.T) {
	seen := map[graph.Op]bool{}
	for _, c := range modeltest.Cases() {
		seen[c.Op] = seen[c.Op] || planned(&c)
	}
	for _, op := range graph.AllOps() {
		if lowerings[op] == nil {
			t.Errorf("%v has no lowering", op)
		}
		if !seen[op] && !op.IsLeaf() {
			t.Errorf("%v has no case with the batches of engines", op)
		}
	}
}

func TestRandomGraphs(t *testing.T) {
	seeds := uint64(120)
	if testing.Short() {
		seeds = 30
	}
	for seed := range seeds {
		sizes := [][]int{{3, 1, 4}, {1}, {40}, {17, 1, 33, 16}}[seed%4]
		g := modeltest.RandomGraph(seed, imageOptions(seed))
		env := modeltest.RandomEnv(g, seed, sizes)
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			compare(t, g, env, 1e-4)
			gradient := gradientOf(t, g)
			compare(t, gradient, env, 1e-3)
			if len(sizes) == 1 {
				single, err := graph.SingleBag(gradient)
				if err != nil {
					t.Fatal(err)
				}
				compare(t, single, env, 1e-3)
			}
		})
	}
}

// imageOptions returns those of the random graph of a seed: every fifth one has images.
func imageOptions(seed uint64) (o modeltest.RandomOptions) {
	if o.Images = seed%5 == 4; o.Images {
		o.Stride = [2]int{int(seed / 5 % 3), 1 + int(seed/15%2)}
	}
	return o
}

// gradientOf returns the gradient of the loss of a graph by its parameters.
func gradientOf(t testing.TB, g *graph.Graph) *graph.Graph {
	t.Helper()
	var names []string
	for _, p := range g.ByOp(graph.OpParam) {
		names = append(names, p.Name)
	}
	gradient, err := graph.Gradient(g, "loss", names)
	if err != nil {
		t.Fatal(err)
	}
	return gradient
}

// FuzzPlan compares plans of random graphs and of their gradients, for batches of any sizes, with the interpreter and
// with each other.
func FuzzPlan(f *testing.F) {
	f.Add(uint64(1), []byte{3, 1, 4})
	f.Add(uint64(942), []byte{40})
	f.Add(uint64(1667), []byte{17, 1, 33, 16})
	f.Fuzz(func(t *testing.T, seed uint64, bytes []byte) {
		var sizes []int
		for _, b := range bytes[:min(len(bytes), 5)] {
			sizes = append(sizes, 1+int(b)%70)
		}
		if len(sizes) == 0 {
			return
		}
		g := modeltest.RandomGraph(seed, imageOptions(seed))
		env := modeltest.RandomEnv(g, seed, sizes)
		compare(t, g, env, 1e-3)
		compare(t, gradientOf(t, g), env, 0.05) // of large sums: above all the bits must be the same
	})
}

// TestLongChain checks element-wise operations on more elements than fit the second-level cache.
func TestLongChain(t *testing.T) {
	b := graph.NewBuilder("chain")
	x := b.Input("x", graph.Float, graph.Shape{longChain + 5})
	b.Output("y", b.Tanh(b.Mul(b.Exp(x), x)))
	g, err := b.Graph()
	if err != nil {
		t.Fatal(err)
	}
	env := modeltest.RandomEnv(g, 1, []int{1})
	env.Values["bag_of"] = &graph.Tensor{Shape: []int{1}, Ints: []int{0}}
	compare(t, g, env, 1e-5)
}

// TestUpdatesInPlace checks that a value of the memory is replaced after its last use: where the graph reads it, it
// reads the old one.
func TestUpdatesInPlace(t *testing.T) {
	for _, c := range []struct {
		name  string
		build func(b *graph.Builder, x, step *graph.Node) (next, seen *graph.Node)
	}{
		{"in place", func(b *graph.Builder, x, step *graph.Node) (next, seen *graph.Node) {
			return b.Sub(x, step), b.SumAll(x)
		}},
		{"read later", func(b *graph.Builder, x, step *graph.Node) (next, seen *graph.Node) {
			next = b.Sub(x, step)
			return next, b.SumAll(b.Mul(b.Exp(next), x))
		}},
		{"not changed", func(b *graph.Builder, x, step *graph.Node) (next, seen *graph.Node) {
			return b.Reshape(x, graph.Shape{5000}), b.SumAll(x)
		}},
		{"a part of another value", func(b *graph.Builder, x, step *graph.Node) (next, seen *graph.Node) {
			both := b.Concat(0, b.Sub(x, step), b.Exp(x))
			return b.Slice(both, 0, 0, 5000), b.SumAll(both)
		}},
	} {
		b := graph.NewBuilder(c.name)
		x, step := b.Input("x", graph.Float, graph.Shape{5000}), b.Input("step", graph.Float, graph.Shape{5000})
		next, seen := c.build(b, x, step)
		b.Output("new_x", next)
		b.Output("seen", seen)
		g, err := b.Graph()
		if err != nil {
			t.Fatal(err)
		}
		env := modeltest.RandomEnv(g, 1, []int{1})
		m := NewMemory()
		copy(m.Add("x", 5000), ndarray.Convert[float32](env.Values["x"].Data))
		p, err := Compile(g, 1, 1, Options{Kernels: kernel.Best(), Memory: m, Updates: map[string]string{"new_x": "x"}})
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Input("step").Bind(ndarray.Convert[float32](env.Values["step"].Data)); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			want, err := graph.Eval(g, env)
			if err != nil {
				t.Fatal(err)
			}
			p.Run()
			got := graph.NewTensor([]int{5000}, ndarray.Convert[float64](m.Value("x"))...)
			if err := enginetest.Near(c.name, got, want["new_x"], 1e-5); err != nil {
				t.Fatal(err)
			}
			if v := float64(p.Output("seen")[0]); math.Abs(v-want["seen"].Data[0]) > 1e-4*math.Abs(v)+1e-2 {
				t.Errorf("%s: the sum is %v, want %v", c.name, v, want["seen"].Data[0])
			}
			env.Values["x"] = got
		}
	}
}

// TestGradientsOfPooledConvolutions checks gradients of large kernels, of which pooling makes most of the results
// zeros. Pooling applies the ReLU and its mask.
func TestGradientsOfPooledConvolutions(t *testing.T) {
	for _, c := range []struct {
		size        graph.Dim
		stride, pad [2]int
	}{{12, [2]int{1, 1}, [2]int{}}, {9, [2]int{1, 1}, [2]int{2, 1}}, {16, [2]int{2, 2}, [2]int{1, 1}}} {
		b := graph.NewBuilder(fmt.Sprint(c))
		x, w := b.Param("x", graph.Shape{3, 4, c.size, c.size}), b.Param("w", graph.Shape{6, 4, 5, 5})
		y := b.MaxPool2D(b.Relu(b.Conv2D(x, w, c.stride, c.pad)), [2]int{2, 2}, [2]int{2, 2})
		b.Output("loss", b.SumAll(b.Tanh(y)))
		g, err := b.Graph()
		if err != nil {
			t.Fatal(err)
		}
		g = gradientOf(t, g)
		env := modeltest.RandomEnv(g, 1, []int{1})
		env.Values["bag_of"] = &graph.Tensor{Shape: []int{1}, Ints: []int{0}}
		compare(t, g, env, 1e-4)
		p, err := Compile(g, 1, 1, Options{Kernels: kernel.Best(), Memory: NewMemory()})
		if err != nil {
			t.Fatal(err)
		}
		if text := p.String(); strings.Contains(text, "Relu ") || strings.Contains(text, "Greater") {
			t.Errorf("the plan has a call for the ReLU or its mask:\n%s", text)
		}
	}
}

// TestJoinedCalls checks that a dense layer with a ReLU and its gradient have no calls for the ReLU and its comparison.
func TestJoinedCalls(t *testing.T) {
	b := graph.NewBuilder("dense")
	x, w := b.Input("x", graph.Float, graph.Shape{9, 5}), b.Param("w", graph.Shape{5, 7})
	b.Output("loss", b.SumAll(b.Relu(b.Add(b.MatMul(x, w), b.Param("bias", graph.Shape{1, 7})))))
	g, err := b.Graph()
	if err != nil {
		t.Fatal(err)
	}
	g = gradientOf(t, g)
	p, err := Compile(g, 1, 1, Options{Kernels: kernel.Best(), Memory: NewMemory()})
	if err != nil {
		t.Fatal(err)
	}
	for _, call := range []string{"Relu ", "GreaterV"} {
		if strings.Contains(p.String(), call) {
			t.Errorf("the plan has a call of %s:\n%s", call, p)
		}
	}
}

// TestJoinedPairs checks that two gates read the instances once, forward and backward.
func TestJoinedPairs(t *testing.T) {
	b := graph.NewBuilder("gates")
	x := b.Input("x", graph.Float, graph.Shape{graph.N, 9})
	gate := func(name string, width graph.Dim, f func(*graph.Node) *graph.Node) *graph.Node {
		w, bias := b.Param(name+".w", graph.Shape{9, width}), b.Param(name+".b", graph.Shape{width})
		return b.Sum(f(b.Add(b.MatMul(x, w), bias)), true, 1)
	}
	b.Output("loss", b.SumAll(b.Mul(gate("tanh", 3, b.Tanh), gate("sigmoid", 2, b.Sigmoid))))
	g, err := b.Graph()
	if err != nil {
		t.Fatal(err)
	}
	g = gradientOf(t, g)
	p, err := Compile(g, 50, 1, Options{Kernels: kernel.Best(), Memory: NewMemory(), small: 450})
	if err != nil {
		t.Fatal(err)
	}
	if products := strings.Count(p.String(), "Gemm "); products != 2 {
		t.Errorf("the plan has %d products, not 2:\n%s", products, p)
	}
	env := modeltest.RandomEnv(g, 1, []int{50})
	env.Values["bag_of"] = &graph.Tensor{Shape: []int{50}, Ints: make([]int, 50)}
	compare(t, g, env, 1e-5)
}

// TestRefusedCalls checks that plans refuse inputs and batches of other sizes.
func TestRefusedCalls(t *testing.T) {
	g := modeltest.RandomGraph(1, modeltest.RandomOptions{})
	p, err := Compile(g, 6, 2, Options{Kernels: kernel.Best(), Memory: NewMemory()})
	if err != nil {
		t.Fatal(err)
	}
	if p.Input("instances").Bind(make([]float32, 1)) == nil {
		t.Error("an input of another size was bound")
	}
	for _, bagOf := range [][]int{{0}, {0, 0, 0, 1, 1, 2}, {0, 1, 0, 1, 1, 1}, {-1, 0, 0, 1, 1, 1}} {
		if p.SetBags(bagOf) == nil {
			t.Errorf("the bags %v were accepted", bagOf)
		}
	}
	if err := p.SetBags([]int{1, 1, 1, 1, 1, 1}); err != nil { // an empty bag is none of the plan's business
		t.Error(err)
	}
}
