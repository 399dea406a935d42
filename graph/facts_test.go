// Facts must hold for the values that the interpreter computes.

package graph_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/testkit/modeltest"
)

func TestFactsOfOps(t *testing.T) {
	for _, c := range modeltest.Cases() {
		t.Run(c.Name, func(t *testing.T) {
			env := c.Env
			for bag := range env.B {
				if !slices.Contains(bagOf(c.Graph, env), bag) { // the facts are of bags with instances
					env = modeltest.RandomEnv(c.Graph, 1, []int{3, 1, 4})
					break
				}
			}
			checkFacts(t, c.Graph, env)
		})
	}
}

func TestFactsOfRandomGraphs(t *testing.T) {
	for seed := range uint64(150) {
		g := modeltest.RandomGraph(seed, modeltest.RandomOptions{Images: seed%5 == 0})
		env := modeltest.RandomEnv(g, seed, []int{3, 1, 4})
		checkFacts(t, g, env)
		checkGradients(t, g, env)
	}
}

// Widths around maxColumns, beyond which all columns share a range.
func TestFactsOfWideGraphs(t *testing.T) {
	for seed := range uint64(100) {
		g := modeltest.RandomGraph(seed, modeltest.RandomOptions{Wide: true})
		checkFacts(t, g, modeltest.RandomEnv(g, seed, []int{2, 1}))
	}
}

// checkGradients checks that the loss does not learn from values that it surely does not depend on.
func checkGradients(t *testing.T, g *graph.Graph, env graph.Env) {
	t.Helper()
	var names []string
	for _, n := range slices.Concat(g.ByOp(graph.OpInput), g.ByOp(graph.OpParam)) {
		if n.Type == graph.Float {
			names = append(names, n.Name)
		}
	}
	reached := graph.Analyze(g, func(*graph.Node) graph.Interval { return graph.Anything }).Leaves(g.Output("loss"), true)
	with, err := graph.Gradient(g, "loss", names)
	if err != nil {
		t.Fatal(err)
	}
	out, err := graph.Eval(with, env)
	if err != nil {
		t.Fatal(err)
	}
	for n := range reached {
		names = slices.DeleteFunc(names, func(name string) bool { return name == n.Name })
	}
	for _, name := range names {
		gradient := out[graph.GradPrefix+name].Data
		if slices.ContainsFunc(gradient, func(x float64) bool { return math.Abs(x) > 1e-12 }) { // smaller: rounding
			t.Errorf("%s: %s has a gradient, which cannot be", g.Name, name)
		}
	}
}

// checkFacts compares the facts of a graph, given the ranges of a batch, with the values of all nodes.
func checkFacts(t *testing.T, g *graph.Graph, env graph.Env) {
	t.Helper()
	facts := graph.Analyze(g, func(n *graph.Node) graph.Interval {
		if n.Type == graph.Int {
			return graph.Interval{Lo: 0, Hi: float64(env.B)}
		}
		r := graph.Interval{Lo: math.Inf(1), Hi: math.Inf(-1)}
		for _, v := range env.Values[n.Name].Data {
			r.Lo, r.Hi = math.Min(r.Lo, v), math.Max(r.Hi, v)
		}
		return r
	})
	values, err := graph.EvalAll(g, env)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range g.Nodes {
		if n.Type == graph.Int {
			continue
		}
		v := values[n.ID]
		if fault := outside(facts, n, v); fault != "" {
			t.Errorf("%s %v %v: %s", g.Name, n.Op, n.Shape, fault)
		}
		if facts.Even(n) && len(v.Shape) > 0 && n.Shape[0] == graph.N && !evenRows(v, bagOf(g, env)) {
			t.Errorf("%s %v %v: rows of a bag differ, which cannot be", g.Name, n.Op, n.Shape)
		}
	}
}

// outside says which value is not in its range. Rounding may exceed it a little.
func outside(facts *graph.Facts, n *graph.Node, v *graph.Tensor) string {
	width := 1
	if len(v.Shape) > 0 {
		width = v.Shape[len(v.Shape)-1]
	}
	for i, x := range v.Data {
		r := facts.Range(n, i%width)
		slack := 1e-9 * (1 + math.Abs(x))
		if !math.IsNaN(x) && !math.IsInf(x, 0) && !(x >= r.Lo-slack && x <= r.Hi+slack) {
			return fmt.Sprintf("%v is not in %v", x, r)
		}
	}
	return ""
}

func bagOf(g *graph.Graph, env graph.Env) []int {
	for _, n := range g.Nodes {
		if n.Type == graph.Int {
			return env.Values[n.Name].Ints
		}
	}
	return make([]int, env.N)
}

func evenRows(v *graph.Tensor, bagOf []int) bool {
	size := len(v.Data) / v.Shape[0]
	first := map[int]int{}
	for row, bag := range bagOf {
		if _, seen := first[bag]; !seen {
			first[bag] = row
		}
		for j := range size {
			if math.Abs(v.Data[row*size+j]-v.Data[first[bag]*size+j]) > 1e-12 {
				return false
			}
		}
	}
	return true
}

// Ops that combine several values multiply them, except those that move values.
func TestProductsAreCounted(t *testing.T) {
	for _, c := range modeltest.Cases() {
		for _, n := range c.Graph.ByOp(c.Op) {
			floats := 0
			for _, x := range n.In {
				if x.Type == graph.Float {
					floats++
				}
			}
			moves := n.Op.Elementwise() || n.Op == graph.OpConcat || n.Op == graph.OpMaxPool2DGrad
			if products := n.Products(c.Env.N, c.Env.B); products > 0 != (floats > 1 && !moves) {
				t.Errorf("%s: %v products", c.Name, products)
			}
		}
	}
}

// What a value depends on, by examples.
func TestLeaves(t *testing.T) {
	b := graph.NewBuilder("leaves")
	x := b.Input("instances", graph.Float, graph.Shape{graph.N, 1})
	bags := b.Input("bag_of", graph.Int, graph.Shape{graph.N})
	w := b.Param("w", graph.Shape{1, 1})
	one := b.Softmax(b.MatMul(x, w)) // over one column
	for _, c := range []struct {
		name              string
		n                 *graph.Node
		inputs, gradients int
		constant, even    bool
	}{
		{"softmax over one column", one, 0, 0, true, true},
		{"product with it", b.Mul(one, x), 1, 1, false, false},
		{"product with 0", b.Mul(b.Scalar(0), x), 0, 0, true, true},
		{"stopped", b.StopGrad(b.MatMul(x, w)), 2, 0, false, false},
		{"row of a bag", b.SegmentGather(b.SegmentSum(b.MatMul(x, w), bags), bags), 3, 3, false, true},
		{"saturated", b.Clamp(b.Sigmoid(x), 2, 3), 0, 0, true, true},
	} {
		b.Output(c.name, c.n)
		g, err := b.Graph()
		if err != nil {
			t.Fatal(err)
		}
		f := graph.Analyze(g, func(*graph.Node) graph.Interval { return graph.Anything })
		if i, l := len(f.Leaves(c.n, false)), len(f.Leaves(c.n, true)); i != c.inputs || l != c.gradients {
			t.Errorf("%s: depends on %d leaves, learns from %d; want %d and %d", c.name, i, l, c.inputs, c.gradients)
		}
		if f.Constant(c.n) != c.constant || f.Even(c.n) != c.even {
			t.Errorf("%s: constant %v, even %v", c.name, f.Constant(c.n), f.Even(c.n))
		}
	}
}

// Facts says of every op on each bag whether instances with equal rows get equal rows.
func TestEvenRowsOfSegmentOps(t *testing.T) {
	for _, op := range graph.AllOps() {
		sizes := []int{3, 1, 4}
		if op == graph.OpAttention || op == graph.OpAttentionGrad {
			sizes = []int{4}
		} else if !op.IsSegment() {
			continue
		}
		b := graph.NewBuilder(op.String())
		bags := b.Input("bag_of", graph.Int, graph.Shape{graph.N})
		row := b.Input("row", graph.Float, graph.Shape{graph.B, 2})
		in := []*graph.Node{b.SegmentGather(row, bags)}
		for i := range 4 {
			in = append(in, b.Input(fmt.Sprint("x", i), graph.Float, graph.Shape{graph.N, 2}))
		}
		if in = in[:op.Arity()]; op.IsSegment() {
			in[len(in)-1] = bags
		}
		if op == graph.OpSegmentGather {
			in[0] = row
		}
		y, err := b.Apply(op, graph.Attrs{}, in...)
		if err != nil {
			t.Fatal(err)
		}
		b.Output("y", y)
		g, err := b.Graph()
		if err != nil {
			t.Fatal(err)
		}
		env := modeltest.RandomEnv(g, 1, sizes)
		values, err := graph.EvalAll(g, env)
		if err != nil {
			t.Fatal(err)
		}
		even := graph.Analyze(g, func(*graph.Node) graph.Interval { return graph.Anything }).Even(y)
		if got := y.Shape[0] != graph.N || evenRows(values[y.ID], bagOf(g, env)); got != even {
			t.Errorf("%v: even rows %v, the facts say %v", op, got, even)
		}
	}
}
