// Steps of many runs against the interpreter, one run at a time.

package onnx_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/miplc/miplc/compile/graph"
	"github.com/miplc/miplc/compile/onnx"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/internal/onnxpb"
	"github.com/miplc/miplc/internal/testkit/enginetest"
	"github.com/miplc/miplc/internal/testkit/modeltest"
)

// layout maps the places of a padded batch to instances, bag by bag. The places after the last
// instance of a bag repeat that instance.
type layout struct {
	env    graph.Env
	places []int
	real   []bool
}

func laidOut(env graph.Env, c onnx.Capacity) layout {
	l := layout{env: env}
	bagOf := env.Values["bag_of"].Ints
	for bag := range c.Bags {
		last := -1
		var own []int
		for i, b := range bagOf {
			if b == bag {
				own, last = append(own, i), i
			}
		}
		for k := range c.Instances {
			l.real = append(l.real, k < len(own))
			l.places = append(l.places, append(own, slices.Repeat([]int{last}, c.Instances)...)[k])
		}
	}
	return l
}

// extents returns a shape in the padded batch, with instances along one axis.
func (l layout) extents(s graph.Shape) []int { return s.Concrete(len(l.places), l.env.B) }

// each calls f with the index of every element of a value in the padded batch, its index
// in the batch, and whether it is real.
func (l layout) each(s graph.Shape, f func(to, from int, real bool)) {
	dims, own := l.extents(s), s.Concrete(l.env.N, l.env.B)
	for to := range ndarray.Size(dims) {
		from, rest, step, real := 0, to, 1, true
		for a := len(dims) - 1; a >= 0; a-- {
			i := rest % dims[a]
			rest /= dims[a]
			if s[a] == graph.N {
				real = real && l.real[i]
				i = l.places[i]
			}
			from += i * step
			step *= own[a]
		}
		f(to, from, real)
	}
}

// feedRuns returns the inputs of a model for several runs.
func feedRuns(m *onnxpb.ModelProto, g *graph.Graph, runs []layout) map[string]*graph.Tensor {
	feed := map[string]*graph.Tensor{}
	for _, in := range m.Graph.Input {
		dims := []int{len(runs)}
		for _, d := range in.Extents()[1:] {
			dims = append(dims, int(d))
		}
		x := graph.NewTensor(dims)
		size := len(x.Data) / len(runs)
		for j, run := range runs {
			part := x.Data[j*size : (j+1)*size]
			switch in.Name {
			case onnx.InReal, onnx.InPadding:
				for i, real := range run.real {
					part[i] = 1
					if in.Name == onnx.InPadding {
						part[i] = 0
					}
					if !real {
						part[i] = graph.OpSegmentMax.Neutral()
						if in.Name == onnx.InReal {
							part[i] = 0
						}
					}
				}
			default:
				for _, n := range g.Nodes {
					if n.Name == in.Name && (n.Op == graph.OpInput || n.Op == graph.OpParam) {
						run.each(n.Shape, func(to, from int, _ bool) { part[to] = run.env.Values[n.Name].Data[from] })
					}
				}
			}
		}
		feed[in.Name] = x
	}
	return feed
}

// fewer returns another batch with different numbers. Its largest bag has one instance less if it
// has several.
func fewer(g *graph.Graph, env graph.Env, factor float64) graph.Env {
	bagOf := env.Values["bag_of"].Ints
	counts := make([]int, env.B)
	for _, b := range bagOf {
		counts[b]++
	}
	drop := -1
	if largest := slices.Max(counts); largest > 1 {
		drop = slices.Index(bagOf, slices.Index(counts, largest))
	}
	out := graph.Env{N: env.N, B: env.B, Values: map[string]*graph.Tensor{}}
	if drop >= 0 {
		out.N--
	}
	for _, n := range g.Nodes {
		old := env.Values[n.Name]
		if n.Op != graph.OpInput && n.Op != graph.OpParam || old == nil {
			continue
		}
		if n.Type == graph.Int {
			out.Values[n.Name] = graph.NewInts(slices.Delete(slices.Clone(old.Ints), max(drop, 0), max(drop, 0)+env.N-out.N)...)
			continue
		}
		to := layout{env: env, real: make([]bool, out.N)}
		for i := range env.N {
			if i != drop {
				to.places = append(to.places, i)
			}
		}
		x := graph.NewTensor(to.extents(n.Shape))
		to.each(n.Shape, func(at, from int, _ bool) { x.Data[at] = factor * old.Data[from] })
		out.Values[n.Name] = x
	}
	return rounded(out)
}

// checkRuns compares each of several runs of a graph with the interpreter. It also checks that the
// result is bit-identical if the run is computed by itself, at another index and among more runs.
func checkRuns(t *testing.T, g *graph.Graph, c onnx.Capacity, tolerance float64, envs ...graph.Env) {
	t.Helper()
	m, err := onnx.LowerRuns(g, 17, c)
	if err != nil {
		t.Fatal(err)
	}
	runs := make([]layout, len(envs))
	for i, env := range envs {
		runs[i] = laidOut(env, c)
	}
	together := enginetest.RunORT(t, m, feedRuns(m, g, runs))
	c.Runs = len(runs)
	device, err := onnx.LowerRuns(g, 17, c)
	if err != nil {
		t.Fatal(err)
	}
	onDevice := enginetest.RunORT(t, device, feedRuns(device, g, runs))
	part := func(of map[string]*graph.Tensor, o graph.Output, place, count int) []float64 {
		data := of[o.Name].Data
		return data[place*len(data)/count : (place+1)*len(data)/count]
	}
	for i, run := range runs {
		want, err := graph.Eval(g, run.env)
		if err != nil {
			t.Fatal(err)
		}
		alone := enginetest.RunORT(t, m, feedRuns(m, g, runs[i:i+1]))
		others := enginetest.RunORT(t, m, feedRuns(m, g, slices.Concat(runs[1:], runs, runs[i:i+1])))
		for _, o := range g.Outputs {
			got := graph.NewTensor(o.Node.Shape.Concrete(run.env.N, run.env.B))
			values := part(together, o, i, len(runs))
			for form, values := range map[string][]float64{"CPU": values, "device": part(onDevice, o, i, len(runs))} {
				run.each(o.Node.Shape, func(at, from int, real bool) {
					if real {
						got.Data[from] = values[at]
					}
				})
				if err := enginetest.Near(fmt.Sprintf("run %d: %s in the form for a %s", i, o.Name, form), got, want[o.Name],
					tolerance); err != nil {
					t.Error(err)
				}
			}
			if !slices.Equal(values, part(alone, o, 0, 1)) {
				t.Errorf("run %d: %s differs from the run by itself", i, o.Name)
			}
			if !slices.Equal(values, part(others, o, 2*len(runs)-1, 2*len(runs))) {
				t.Errorf("run %d: %s differs from the run among others", i, o.Name)
			}
		}
	}
}

// capacityOf returns a capacity larger than the largest bag of a batch needs.
func capacityOf(env graph.Env, more int) onnx.Capacity {
	c := onnx.Capacity{Bags: env.B}
	for bag := range env.B {
		n := 0
		for _, b := range env.Values["bag_of"].Ints {
			if b == bag {
				n++
			}
		}
		c.Instances = max(c.Instances, n+more)
	}
	return c
}

// emptyBag reports whether a batch has a bag without instances.
func emptyBag(env graph.Env) bool {
	for bag := range env.B {
		if !slices.Contains(env.Values["bag_of"].Ints, bag) {
			return true
		}
	}
	return false
}

// images lists the ops that have no lowering for several runs.
var images = []graph.Op{graph.OpConv2D, graph.OpConv2DGradInput, graph.OpConv2DGradWeight, graph.OpMaxPool2D,
	graph.OpMaxPool2DGrad}

// Every op and its gradient compute the interpreter's numbers for each of several runs with bags of
// different sizes. The other runs do not change a bit.
func TestOpsOfManyRuns(t *testing.T) {
	tried := map[graph.Op]bool{}
	for _, c := range modeltest.Cases() {
		if c.Padded || emptyBag(c.Env) || slices.Contains(images, c.Op) {
			continue
		}
		tried[c.Op] = true
		t.Run(c.Name, func(t *testing.T) {
			g := renamed(c.Graph)
			if c.Differentiable {
				var err error
				if g, err = graph.Gradient(g, "loss", c.Wrt); err != nil {
					t.Fatal(err)
				}
			}
			env := rounded(c.Env)
			half := fewer(g, env, 0.5)
			checkRuns(t, g, capacityOf(env, 3*(len(c.Name)%2)), 1e-5, env, half, fewer(g, half, 0.75))
		})
	}
	for _, op := range graph.AllOps() {
		if !tried[op] && op != graph.OpInput && op != graph.OpParam && !slices.Contains(images, op) {
			t.Errorf("no case for %v", op)
		}
	}
}

// Random graphs and their gradients agree for several runs, with one bag and with several.
func TestRandomGraphsOfManyRuns(t *testing.T) {
	for seed := range uint64(48) {
		g := modeltest.RandomGraph(seed, modeltest.RandomOptions{})
		var names []string
		for _, p := range g.ByOp(graph.OpParam) {
			names = append(names, p.Name)
		}
		g, err := graph.Gradient(g, "loss", names)
		if err != nil {
			t.Fatal(err)
		}
		if seed%2 == 0 {
			if g, err = graph.Condense(g); err != nil {
				t.Fatal(err)
			}
		}
		env := rounded(modeltest.RandomEnv(g, seed, [][]int{{3, 1, 4}, {5}, {1, 1}, {2, 7, 1, 3}}[seed%4]))
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			checkRuns(t, g, capacityOf(env, int(seed/4%3)), 1e-4, env, fewer(g, env, 0.5))
		})
	}
}

// The gradient of a layer with few columns, whose product is computed transposed, and its bias, which is
// repeated for the instances of a bag, in sizes at which onnxruntime uses several kernels.
func TestNarrowLayersOfManyRuns(t *testing.T) {
	for _, columns := range []int{2, 7, 13} {
		m := graph.NewBuilder("narrow")
		x := m.Input("instances", graph.Float, graph.Shape{graph.N, 56})
		w := m.Param("w", graph.Shape{56, graph.Dim(columns)})
		bias := m.Param("bias", graph.Shape{graph.Dim(columns)})
		y := m.Tanh(m.Add(m.MatMul(x, w), bias))
		z := m.SegmentSum(y, m.Input("bag_of", graph.Int, graph.Shape{graph.N}))
		m.Output("loss", m.SumAll(m.Mul(z, z)))
		g, err := m.Graph()
		if err != nil {
			t.Fatal(err)
		}
		if g, err = graph.Gradient(g, "loss", []string{"w", "bias"}); err != nil {
			t.Fatal(err)
		}
		env := rounded(modeltest.RandomEnv(g, 5, []int{31, 7, 40}))
		t.Run(fmt.Sprint(columns), func(t *testing.T) {
			checkRuns(t, g, capacityOf(env, 2), 1e-4, env, fewer(g, env, 0.5))
		})
	}
}

// Slices that divide a value become Split nodes, with at most seven outputs on a device. Slices that
// overlap or omit a part stay.
func TestSlicesOfManyRuns(t *testing.T) {
	cases := []struct {
		name                  string
		bounds                []int // starts and ends
		slices, split, device int
	}{
		{"cover", []int{0, 2, 2, 5, 5, 16}, 0, 1, 1},
		{"cover with many", []int{0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9, 16}, 0, 1, 2},
		{"overlap", []int{0, 4, 3, 16}, 2, 0, 0},
		{"gap", []int{0, 4, 5, 16}, 2, 0, 0},
	}
	for _, c := range cases {
		m := graph.NewBuilder(c.name)
		x := m.Input("instances", graph.Float, graph.Shape{graph.N, 16})
		y, total := m.Tanh(x), m.Scalar(0)
		for i := 0; i < len(c.bounds); i += 2 {
			part := m.Slice(y, 1, c.bounds[i], c.bounds[i+1])
			total = m.Add(total, m.Mul(m.Scalar(float64(i+1)), m.SumAll(m.Mul(part, part))))
		}
		m.Input("bag_of", graph.Int, graph.Shape{graph.N})
		m.Output("loss", total)
		g, err := m.Graph()
		if err != nil {
			t.Fatal(err)
		}
		env := rounded(modeltest.RandomEnv(g, 5, []int{3, 1}))
		checkRuns(t, g, capacityOf(env, 1), 1e-5, env, fewer(g, env, 0.5))
		for runs, split := range map[int]int{0: c.split, 2: c.device} {
			capacity := capacityOf(env, 1)
			capacity.Runs = runs
			model, err := onnx.LowerRuns(g, 17, capacity)
			if err != nil {
				t.Fatal(err)
			}
			counts := map[string]int{}
			for _, n := range model.Graph.Node {
				counts[n.OpType]++
			}
			if counts["Slice"] != c.slices || counts["Split"] != split {
				t.Errorf("%s: %d Slice, %d Split, want %d and %d", c.name, counts["Slice"], counts["Split"], c.slices, split)
			}
		}
	}
}

// 16 bags need no rounding; one bag is rounded to eight instances.
func TestWholePackets(t *testing.T) {
	for _, c := range [][3]int{{16, 25, 25}, {1, 25, 32}, {2, 25, 28}, {12, 7, 8}, {3, 8, 8}} {
		if n := onnx.WholePackets(c[0], c[1]); n != c[2] {
			t.Errorf("%d bags of %d instances: %d, not %d", c[0], c[1], n, c[2])
		}
	}
}
