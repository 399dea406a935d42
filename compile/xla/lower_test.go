// Every op and random graphs against the interpreter.

package xla

import (
	"fmt"
	"math"
	"testing"

	"github.com/gomlx/compute"

	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/internal/testkit/enginetest"
	"github.com/miplc/miplc/internal/testkit/modeltest"
)

// run evaluates a graph as a program of the given capacity. With a trial axis, trial i gets the batch
// envs[i].
func run(t testing.TB, g *graph.Graph, c Capacity, envs ...graph.Env) []map[string]*graph.Tensor {
	t.Helper()
	backend := enginetest.Backend(t)
	program, err := Compile(backend, g, c)
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close()
	var buffers []compute.Buffer
	for _, n := range g.Nodes {
		if n.Op != graph.OpInput && n.Op != graph.OpParam {
			continue
		}
		dims := n.Shape.Concrete(c.N, c.B)
		var flat any
		var values []float32
		var numbers []int32
		for _, env := range envs {
			v := padded(env.Values[n.Name], n, dims)
			for _, x := range v.Data {
				values = append(values, float32(x))
			}
			for _, x := range v.Ints {
				numbers = append(numbers, int32(x))
			}
		}
		if c.Trials > 0 {
			dims = append([]int{c.Trials}, dims...)
		}
		shape := floats(dims...)
		flat = values
		if n.Type == graph.Int {
			shape, flat = ints(dims...), numbers
		}
		buffer, err := backend.BufferFromFlatData(0, flat, shape)
		if err != nil {
			t.Fatal(err)
		}
		buffers = append(buffers, buffer)
	}
	results, err := program.Run(buffers)
	if err != nil {
		t.Fatal(err)
	}
	return unpack(t, g, c, envs, results)
}

// unpack splits the results into trials and removes padding.
func unpack(t testing.TB, g *graph.Graph, c Capacity, envs []graph.Env,
	results []compute.Buffer) []map[string]*graph.Tensor {
	all := make([]map[string]*graph.Tensor, len(envs))
	for i := range envs {
		all[i] = map[string]*graph.Tensor{}
	}
	for k, o := range g.Outputs {
		dims := o.Node.Shape.Concrete(c.N, c.B)
		size := ndarray.Size(dims)
		flat := make([]float32, size*max(1, c.Trials))
		if err := results[k].ToFlatData(flat); err != nil {
			t.Fatal(err)
		}
		for i, env := range envs {
			x := graph.NewTensor(dims)
			for j := range x.Data {
				x.Data[j] = float64(flat[i*size+j])
			}
			all[i][o.Name] = window(x, o.Node.Shape.Concrete(env.N, env.B))
		}
	}
	return all
}

// window returns the first elements along each axis.
func window(x *graph.Tensor, want []int) *graph.Tensor {
	out := graph.NewTensor(want)
	for i := range out.Data {
		at, rest, step := 0, i, 1
		for a := len(want) - 1; a >= 0; a-- {
			at += rest % want[a] * step
			rest /= want[a]
			step *= x.Shape[a]
		}
		out.Data[i] = x.Data[at]
	}
	return out
}

// padded extends a value to larger extents. The padding of bag_of is -1, other padding is arbitrary.
func padded(v *graph.Tensor, n *graph.Node, want []int) *graph.Tensor {
	if v == nil {
		v = graph.NewTensor(n.Shape.Concrete(1, 1))
	}
	size := ndarray.Size(want)
	out := &graph.Tensor{Shape: want, Data: make([]float64, size)}
	if n.Type == graph.Int {
		out.Data, out.Ints = nil, make([]int, size)
	}
	for i := range size {
		at, rest, step, inside := 0, i, 1, true
		for a := len(want) - 1; a >= 0; a-- {
			at += rest % want[a] * step
			inside = inside && rest%want[a] < v.Shape[a]
			rest /= want[a]
			step *= v.Shape[a]
		}
		switch {
		case n.Type == graph.Int && inside:
			out.Ints[i] = v.Ints[at]
		case n.Type == graph.Int:
			out.Ints[i] = -1
		case inside:
			out.Data[i] = v.Data[at]
		default:
			out.Data[i] = 3.5 - float64(i%7)
		}
	}
	return out
}

// agree compares outputs with the interpreter's.
func agree(got, want map[string]*graph.Tensor, tolerance float64) error {
	for name, w := range want {
		v := got[name]
		for i := range w.Data {
			if d := math.Abs(v.Data[i] - w.Data[i]); !(d <= tolerance*math.Max(1, math.Abs(w.Data[i]))) &&
				v.Data[i] != w.Data[i] {
				return fmt.Errorf("%s[%d] is %v, the interpreter has %v", name, i, v.Data[i], w.Data[i])
			}
		}
	}
	return nil
}

// brief reduces the number of programs, because XLA compiles slowly.
func brief() bool { return testing.Short() && enginetest.OnPlugin() }

// capacities returns a capacity without padding, one with padding instances, and one with padding
// instances and bags.
func capacities(env graph.Env) []Capacity {
	return []Capacity{{N: env.N, B: env.B}, {N: env.N + 3, B: env.B}, {N: env.N + 5, B: env.B + 2}}
}

// Every op, its corner cases and its gradient agree with the interpreter, at any capacity and with
// a trial axis.
func TestOps(t *testing.T) {
	for _, c := range modeltest.Cases() {
		t.Run(c.Name, func(t *testing.T) {
			g := c.Graph
			if c.Differentiable {
				var err error
				if g, err = graph.Gradient(g, "loss", c.Wrt); err != nil {
					t.Fatal(err)
				}
			}
			check(t, g, c.Env)
		})
	}
}

// check compares a graph with the interpreter at several capacities and as two trials with different
// batches.
func check(t *testing.T, g *graph.Graph, env graph.Env) {
	t.Helper()
	want, err := graph.Eval(g, env)
	if err != nil {
		t.Fatal(err)
	}
	alone := capacities(env)
	if brief() {
		alone = nil // the trials below are padded too
	}
	for _, c := range alone {
		if err := agree(run(t, g, c, env)[0], want, enginetest.Tolerance(1e-5)); err != nil {
			t.Errorf("capacity %d instances, %d bags: %v", c.N, c.B, err)
		}
	}
	other := halved(env)
	wantOther, err := graph.Eval(g, other)
	if err != nil {
		t.Fatal(err)
	}
	got := run(t, g, Capacity{N: env.N + 2, B: env.B + 1, Trials: 2}, env, other)
	for i, w := range []map[string]*graph.Tensor{want, wantOther} {
		if err := agree(got[i], w, enginetest.Tolerance(1e-5)); err != nil {
			t.Errorf("trial %d: %v", i, err)
		}
	}
}

// halved returns another batch of the same sizes.
func halved(env graph.Env) graph.Env {
	other := graph.Env{N: env.N, B: env.B, Values: map[string]*graph.Tensor{}}
	for name, v := range env.Values {
		w := &graph.Tensor{Shape: v.Shape, Ints: v.Ints}
		for _, x := range v.Data {
			w.Data = append(w.Data, x/2)
		}
		other.Values[name] = w
	}
	return other
}

// Random graphs and their gradients agree for ragged batches.
func TestRandomGraphs(t *testing.T) {
	count := uint64(200)
	if brief() {
		count = 20
	}
	for seed := range count {
		g := modeltest.RandomGraph(seed, modeltest.RandomOptions{Images: seed%4 == 0})
		sizes := [][]int{{3, 1, 4}, {5}, {1, 1}, {2, 7, 1, 3}}[seed%4]
		env := modeltest.RandomEnv(g, seed, sizes)
		var names []string
		for _, p := range g.ByOp(graph.OpParam) {
			names = append(names, p.Name)
		}
		d, err := graph.Gradient(g, "loss", names)
		if err != nil {
			t.Fatal(err)
		}
		want, err := graph.Eval(d, env)
		if err != nil {
			t.Fatal(err)
		}
		all := capacities(env)
		c := all[seed%uint64(len(all))]
		if err := agree(run(t, d, c, env)[0], want, enginetest.Tolerance(1e-4)); err != nil {
			t.Errorf("graph %d at %d of %d instances, %d of %d bags: %v", seed, env.N, c.N, env.B, c.B, err)
		}
	}
}

// A reshape that would move padding between rows is rejected.
func TestReshapeOfRows(t *testing.T) {
	b := graph.NewBuilder("mix")
	b.Output("y", b.Reshape(b.Input("x", graph.Float, graph.Shape{graph.N, 2}), graph.Shape{2, graph.N}))
	g, err := b.Graph()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Compile(enginetest.Backend(t), g, Capacity{N: 4, B: 1}); err == nil {
		t.Error("the reshape was lowered")
	}
}

// The table of lowerings contains every op.
func TestTableIsComplete(t *testing.T) {
	for _, op := range graph.AllOps() {
		if table[op] == nil {
			t.Errorf("no lowering of %v", op)
		}
	}
}
