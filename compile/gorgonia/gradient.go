// Differentiation with the gradients of our op types.

package gorgonia

import (
	"github.com/chewxy/hm"
	"github.com/miplc/miplc/graph"
	"gorgonia.org/gorgonia"
)

// differentiate adds the gradients of the loss with gorgonia.Grad, and ops that copy them to
// Lowering.Grads. Gradients of parameters that the loss does not depend on are set to zero once.
func (l *lowerer[T]) differentiate(g *graph.Graph) {
	if l.o.Loss == "" {
		return
	}
	out := g.Output(l.o.Loss)
	if out == nil {
		graph.Fail("there is no output %s to differentiate", l.o.Loss)
	}
	if len(out.Shape) != 0 {
		graph.Fail("output %s has the shape %v; only a scalar can be differentiated", l.o.Loss, out.Shape)
	}
	cost := l.cost(l.nodes[out.ID])
	reached := l.reached(cost)
	var wrt gorgonia.Nodes
	var names []string
	for _, p := range g.ByOp(graph.OpParam) {
		dst, wanted := l.o.Grads[p.Name]
		if !wanted {
			continue
		}
		if node := l.nodes[p.ID]; node != nil && reached[node] {
			wrt, names = append(wrt, node), append(names, p.Name)
		} else {
			clear(dst)
		}
	}
	if len(wrt) == 0 {
		return
	}
	// Grad finds this node by its name. Else it would add its own, a variable of the package that AddNode writes to
	// without a lock.
	cost.Graph().AddNode(gorgonia.NewConstant(T(1)))
	grads, err := gorgonia.Grad(cost, wrt...)
	if err != nil {
		graph.Fail("gradient of %s: %w", l.o.Loss, err)
	}
	for i, dx := range grads {
		l.deliver(dx, l.o.Grads[names[i]])
	}
}

// deliver adds an op that copies a gradient to dst.
func (l *lowerer[T]) deliver(dx *gorgonia.Node, dst []T) {
	l.apply("Deliver", nil, func(_ []T, in [][]T, _ []int) { copy(dst, in[0]) }, nil, dx)
}

// cost converts the loss, a vector of one element, into the scalar that gorgonia.Grad requires.
func (l *lowerer[T]) cost(loss *gorgonia.Node) *gorgonia.Node {
	run := func(out []T, in [][]T, _ []int) { copy(out, in[0]) }
	o := l.op("Cost", nil, run, func(_ int, _ gorgonia.Nodes, _, dy *gorgonia.Node) *gorgonia.Node {
		return l.apply("CostGrad", nil, run, nil, dy)
	}, loss)
	o.diff[0], o.typ = l.needs[loss], hm.NewFnType(loss.Type(), dtype[T]())
	return graph.Must(gorgonia.ApplyOp(o, loss))
}

// reached returns the nodes through which the cost is differentiated.
func (l *lowerer[T]) reached(cost *gorgonia.Node) map[*gorgonia.Node]bool {
	seen := map[*gorgonia.Node]bool{cost: true}
	for stack := (gorgonia.Nodes{cost}); len(stack) > 0; {
		n := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		o, ok := n.Op().(*op[T])
		if !ok {
			continue
		}
		for i, x := range o.in {
			if o.diff[i] && !seen[x] {
				seen[x] = true
				stack = append(stack, x)
			}
		}
	}
	return seen
}
