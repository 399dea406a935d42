// The verifier of graphs.

package graph

import (
	"fmt"
	"math"
	"slices"

	"github.com/miplc/miplc/internal/diag"
)

// Verify checks that a graph is well formed: the ID of every node is its index, inputs
// come before it, types and shapes follow the op table, and inputs, parameters and
// outputs have unique names. It returns the first error.
func Verify(g *Graph) error {
	names := map[string]bool{}
	for i, n := range g.Nodes {
		if err := verifyNode(g, i, n); err != nil {
			return fmt.Errorf("graph %s: %w", g.Name, err)
		}
		if !n.Op.IsLeaf() {
			continue
		}
		if n.Name == "" || names[n.Name] {
			return fmt.Errorf("graph %s: %s needs a name that no other input or parameter has", g.Name, n.describe())
		}
		names[n.Name] = true
	}
	outputs := map[string]bool{}
	for _, o := range g.Outputs {
		if o.Name == "" || outputs[o.Name] {
			return fmt.Errorf("graph %s: output %q needs a name that no other output has", g.Name, o.Name)
		}
		if !g.contains(o.Node) {
			return fmt.Errorf("graph %s: output %s is a node of another graph", g.Name, o.Name)
		}
		outputs[o.Name] = true
	}
	return nil
}

// contains reports whether n is a node of the graph.
func (g *Graph) contains(n *Node) bool {
	return n != nil && n.ID >= 0 && n.ID < len(g.Nodes) && g.Nodes[n.ID] == n
}

func verifyNode(g *Graph, i int, n *Node) error {
	if n == nil {
		return fmt.Errorf("node %d is nil", i)
	}
	if n.ID != i {
		return diag.Errorf(n.Pos, "%s is at index %d", n.describe(), i)
	}
	for k, in := range n.In {
		if !g.contains(in) {
			return diag.Errorf(n.Pos, "%s: input %d is a node of another graph", n.describe(), k)
		}
		if in.ID >= i {
			return diag.Errorf(n.Pos, "%s: input %d, %s, comes after it", n.describe(), k, in.describe())
		}
	}
	again := *n
	if err := infer(&again); err != nil {
		return diag.Errorf(n.Pos, "%s: %v", n.describe(), err)
	}
	if err := n.Shape.check(); err != nil {
		return diag.Errorf(n.Pos, "%s: %v", n.describe(), err)
	}
	if again.Type != n.Type || !again.Shape.Equal(n.Shape) {
		return diag.Errorf(n.Pos, "%s is marked %v %v, the op table gives %v %v",
			n.describe(), n.Type, n.Shape, again.Type, again.Shape)
	}
	return nil
}

// sameAttrs reports whether two nodes of one op have equal static arguments.
func sameAttrs(a, b *Attrs) bool {
	return a.Axis == b.Axis && a.Keep == b.Keep && a.Start == b.Start && a.End == b.End &&
		a.Kernel == b.Kernel && a.Stride == b.Stride && a.Pad == b.Pad &&
		sameBits(a.Lo, b.Lo) && sameBits(a.Hi, b.Hi) && sameBits(a.Value, b.Value) &&
		slices.Equal(a.Axes, b.Axes) && slices.Equal(a.Perm, b.Perm) && a.Shape.Equal(b.Shape) &&
		slices.EqualFunc(a.Data, b.Data, sameBits)
}

// sameBits distinguishes 0 from -0 and treats NaN as equal to itself.
func sameBits(x, y float64) bool { return math.Float64bits(x) == math.Float64bits(y) }
