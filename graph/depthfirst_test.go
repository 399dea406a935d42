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
		t.Errorf("%d nodes instead of %d, %v values at once instead of %v", len(ordered.Nodes), len(g.Nodes), after.peak, before.peak)
	}
	again := DepthFirst(ordered, instances, 1)
	if cost := newDepthFirst(again, instances, 1).cost(); after.less(cost) {
		t.Errorf("the second time the memory rises from %v to %v", after, cost)
	}
}
