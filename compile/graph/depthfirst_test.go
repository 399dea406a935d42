// The order of nodes needs less memory, also in large graphs.

package graph

import "testing"

// The gradient of gated attention needs less memory, from the same nodes.
func TestDepthFirst(t *testing.T) {
	b := NewBuilder("gates")
	x := b.Input("x", Float, Shape{N, 32})
	h := b.Relu(b.MatMul(x, b.Param("W", Shape{32, 16})))
	gate := func(f func(*Node) *Node, weight, bias string) *Node {
		return f(b.Add(b.MatMul(h, b.Param(weight, Shape{16, 8})), b.Param(bias, Shape{8})))
	}
	s := b.MatMul(b.Mul(gate(b.Tanh, "V", "bv"), gate(b.Sigmoid, "U", "bu")), b.Param("w", Shape{8, 1}))
	b.Output("loss", b.Sum(b.Mul(b.Exp(s), h), false, 0, 1))
	g, err := Gradient(finished(t, b), "loss", []string{"W", "V", "bv", "U", "bu", "w"})
	if err == nil {
		g, err = Condense(g)
	}
	if err != nil {
		t.Fatal(err)
	}
	const instances = 1000
	before, ordered := newDepthFirst(g, instances, 1).cost(), DepthFirst(g, instances, 1)
	if err := Verify(ordered); err != nil {
		t.Fatal(err)
	}
	after := newDepthFirst(ordered, instances, 1).cost()
	if len(ordered.Nodes) != len(g.Nodes) || after.peak > 0.8*before.peak {
		t.Errorf("%d nodes instead of %d, %v values at once instead of %v", len(ordered.Nodes), len(g.Nodes), after.peak,
			before.peak)
	}
	again := DepthFirst(ordered, instances, 1)
	if cost := newDepthFirst(again, instances, 1).cost(); after.less(cost) {
		t.Errorf("the second time the memory rises from %v to %v", after, cost)
	}
}

// The search ends within seconds for a graph of thousands of nodes.
func TestDepthFirstOfManyNodes(t *testing.T) {
	b := NewBuilder("deep")
	h := b.Input("x", Float, Shape{N, 4})
	w := b.Param("W", Shape{4, 4})
	for range 1000 {
		h = b.Add(b.Tanh(b.MatMul(h, w)), h)
	}
	b.Output("loss", b.Sum(h, false, 0, 1))
	g, err := Gradient(finished(t, b), "loss", []string{"W"})
	if err != nil {
		t.Fatal(err)
	}
	s := newDepthFirst(g, 1000, 1)
	s.improve()
	if s.simulated > maxSimulated+len(g.Nodes) {
		t.Errorf("%d nodes simulated for a graph of %d", s.simulated, len(g.Nodes))
	}
	if err := Verify(s.reordered()); err != nil {
		t.Error(err)
	}
}
