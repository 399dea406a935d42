// Reverse-mode differentiation of graphs.

package graph

import (
	"fmt"
	"slices"
	"strings"

	"github.com/miplc/miplc/internal/diag"
)

// GradPrefix is the prefix of outputs that contain gradients; the name of the parameter follows.
const GradPrefix = "grad."

// gradFunc builds the gradient of the loss with respect to each input of n, from n, its inputs and
// dy, the gradient with respect to n. nil means no gradient.
type gradFunc func(b *Builder, n, dy *Node) []*Node

// Gradient returns g with one more output "grad.<name>" for each parameter or input in wrt: the
// gradient of the scalar output loss with respect to it, in its shape. The gradient is zero if the
// loss does not depend on the value.
func Gradient(g *Graph, loss string, wrt []string) (*Graph, error) {
	b := NewBuilder(g.Name)
	copies := b.Copy(g, nil)
	b.copyOutputs(g, copies)
	if _, err := b.Graph(); err != nil {
		return nil, err
	}
	top, leaves, err := endpoints(g, loss, wrt)
	if err != nil {
		return nil, err
	}
	back := &backward{b: b, dy: make([]*Node, len(g.Nodes)), wanted: dependents(g, leaves)}
	if err := back.run(copies[top.ID]); err != nil {
		return nil, fmt.Errorf("gradient of %s: %w", loss, err)
	}
	for i, n := range leaves {
		grad := back.dy[n.ID]
		if grad == nil {
			grad = b.Fill(0, n.Shape)
		}
		b.Output(GradPrefix+wrt[i], grad)
	}
	full, err := b.Graph()
	if err != nil {
		return nil, fmt.Errorf("gradient of %s: %w", loss, err)
	}
	return DeadCode(full) // drops gradients of inputs that are not in wrt
}

// endpoints finds the loss and the values to differentiate with respect to.
func endpoints(g *Graph, loss string, wrt []string) (*Node, []*Node, error) {
	top := g.Output(loss)
	if top == nil {
		return nil, nil, fmt.Errorf("graph %s has no output %s to differentiate", g.Name, loss)
	}
	if len(top.Shape) != 0 || top.Type != Float {
		return nil, nil, diag.Errorf(top.Pos, "output %s is %v %v, only a float scalar can be differentiated", loss, top.Type,
			top.Shape)
	}
	leaves := make([]*Node, len(wrt))
	for i, name := range wrt {
		n := g.Param(name)
		if n == nil {
			n = g.Input(name)
		}
		if n == nil || n.Type != Float {
			return nil, nil, fmt.Errorf("graph %s has no parameter or float input %s to differentiate by", g.Name, name)
		}
		if g.Output(GradPrefix+name) != nil || slices.Contains(wrt[:i], name) {
			return nil, nil, fmt.Errorf("graph %s has the output %s%s already", g.Name, GradPrefix, name)
		}
		leaves[i] = n
	}
	return top, leaves, nil
}

// dependents marks, by ID, the nodes that are computed from one of the leaves.
func dependents(g *Graph, leaves []*Node) []bool {
	marked := make([]bool, len(g.Nodes))
	for _, n := range leaves {
		marked[n.ID] = true
	}
	for _, n := range g.Nodes {
		for _, in := range n.In {
			marked[n.ID] = marked[n.ID] || marked[in.ID]
		}
	}
	return marked
}

// backward walks from the loss to the leaves. dy collects, by ID, the gradient with respect to each
// node of the forward part.
type backward struct {
	b      *Builder
	dy     []*Node
	wanted []bool
}

func (w *backward) run(top *Node) error {
	w.dy[top.ID] = w.b.Fill(1, Shape{})
	for id := top.ID; id >= 0; id-- {
		n, dy := w.b.g.Nodes[id], w.dy[id]
		if dy == nil || !w.wanted[id] || n.Op.IsLeaf() {
			continue
		}
		if ops[n.Op].flat {
			continue
		}
		rule := ops[n.Op].grad
		if rule == nil {
			return diag.Errorf(n.Pos, "%s has no gradient: it is part of a gradient, and second derivatives are not supported",
				n.describe())
		}
		grads := rule(w.b.At(n.Pos).Label(strings.TrimSuffix(GradPrefix+n.Name, ".")), n, dy)
		if w.b.err != nil {
			return w.b.err
		}
		for i, in := range n.In {
			switch {
			case grads[i] == nil || !w.wanted[in.ID]:
			case w.dy[in.ID] == nil:
				w.dy[in.ID] = grads[i]
			default:
				w.dy[in.ID] = w.b.Add(w.dy[in.ID], grads[i])
			}
		}
	}
	return w.b.err
}

// sumTo reduces dy to the shape s of an operand that was broadcast: it sums over all axes that were
// repeated or added.
func (b *Builder) sumTo(dy *Node, s Shape) *Node {
	if dy.Shape.Equal(s) {
		return dy
	}
	added := len(dy.Shape) - len(s)
	var axes []int
	for i, d := range dy.Shape {
		if i < added || s[i-added] != d {
			axes = append(axes, i)
		}
	}
	if len(axes) > 0 {
		dy = b.Sum(dy, true, axes...)
	}
	if !dy.Shape.Equal(s) {
		dy = b.Reshape(dy, s)
	}
	return dy
}

// keptShape returns the shape of a reduction that keeps the reduced axes with size 1.
func keptShape(x Shape, axes []int) Shape {
	s := x.Clone()
	for _, a := range axes {
		s[a] = 1
	}
	return s
}
