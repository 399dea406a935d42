package onnx_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/miplc/miplc/compile/onnx"
	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/graph/graphtest"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/internal/onnxpb"
	"github.com/miplc/miplc/runtime/onnxtest"
)

// layout says which instance of a batch lies in each place of a padded one: bag by bag,
// the last instance of a bag again where it has no more.
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

// extents are those of a shape in the padded batch, instances along one axis.
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

// feedRuns returns the inputs of a model of many runs.
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
			case onnx.InRows, onnx.InLow:
				for i, real := range run.real {
					part[i] = 1
					if in.Name == onnx.InLow {
						part[i] = 0
					}
					if !real {
						part[i] = graph.OpSegmentMax.Neutral()
						if in.Name == onnx.InRows {
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

// fewer is another batch: the numbers are other ones, and the largest bag has an instance
// less, if it has several.
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

// checkRuns compares each of several runs of a graph with the interpreter, and its bits
// with those that it has alone, in another place and among more runs.
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
	together := onnxtest.RunORT(t, m, feedRuns(m, g, runs))
	c.Runs = len(runs)
	device, err := onnx.LowerRuns(g, 17, c)
	if err != nil {
		t.Fatal(err)
	}
	onDevice := onnxtest.RunORT(t, device, feedRuns(device, g, runs))
	part := func(of map[string]*graph.Tensor, o graph.Output, place, count int) []float64 {
		data := of[o.Name].Data
		return data[place*len(data)/count : (place+1)*len(data)/count]
	}
	for i, run := range runs {
		want, err := graph.Eval(g, run.env)
		if err != nil {
			t.Fatal(err)
		}
		alone := onnxtest.RunORT(t, m, feedRuns(m, g, runs[i:i+1]))
		others := onnxtest.RunORT(t, m, feedRuns(m, g, slices.Concat(runs[1:], runs, runs[i:i+1])))
		for _, o := range g.Outputs {
			got := graph.NewTensor(o.Node.Shape.Concrete(run.env.N, run.env.B))
			values := part(together, o, i, len(runs))
			for form, values := range map[string][]float64{"CPU": values, "device": part(onDevice, o, i, len(runs))} {
				run.each(o.Node.Shape, func(at, from int, real bool) {
					if real {
						got.Data[from] = values[at]
					}
				})
				if err := onnxtest.Near(fmt.Sprintf("run %d: %s in the form for a %s", i, o.Name, form), got, want[o.Name], tolerance); err != nil {
					t.Error(err)
				}
			}
			if !slices.Equal(values, part(alone, o, 0, 1)) {
				t.Errorf("run %d: %s has other bits alone", i, o.Name)
			}
			if !slices.Equal(values, part(others, o, 2*len(runs)-1, 2*len(runs))) {
				t.Errorf("run %d: %s has other bits among others", i, o.Name)
			}
		}
	}
}

// capacityOf has room for the largest bag of a batch, and more.
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

// emptyBag reports whether a bag of a batch has no instance.
func emptyBag(env graph.Env) bool {
	for bag := range env.B {
		if !slices.Contains(env.Values["bag_of"].Ints, bag) {
			return true
		}
	}
	return false
}

// images are the ops without a lowering for many runs.
var images = []graph.Op{graph.OpConv2D, graph.OpConv2DGradInput, graph.OpConv2DGradWeight, graph.OpMaxPool2D, graph.OpMaxPool2DGrad}

// Every op and its gradient give the interpreter's numbers for each of several runs with
// bags of different sizes, and the same bits in any company.
func TestOpsOfManyRuns(t *testing.T) {
	tried := map[graph.Op]bool{}
	for _, c := range graphtest.Cases() {
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

// Random graphs of many runs with their gradients, for one bag and for several.
func TestRandomGraphsOfManyRuns(t *testing.T) {
	for seed := range uint64(48) {
		g := graphtest.Random(seed, graphtest.Options{})
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
		env := rounded(graphtest.RandomEnv(g, seed, [][]int{{3, 1, 4}, {5}, {1, 1}, {2, 7, 1, 3}}[seed%4]))
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			checkRuns(t, g, capacityOf(env, int(seed/4%3)), 1e-4, env, fewer(g, env, 0.5))
		})
	}
}
