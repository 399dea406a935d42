// Graphs as text.

package graph

import (
	"fmt"
	"hash/fnv"
	"math"
	"strconv"
	"strings"
)

// Text prints the graph, one line per node, then the outputs:
//
//	%12 = SegmentSum %10, %2 : float [B, 38]   # name
//
// Equal graphs give equal text.
func (g *Graph) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "graph %s\n", g.Name)
	for _, n := range g.Nodes {
		b.WriteString(n.text())
		b.WriteByte('\n')
	}
	for _, o := range g.Outputs {
		fmt.Fprintf(&b, "output %s = %%%d : %v %v\n", o.Name, o.Node.ID, o.Node.Type, o.Node.Shape)
	}
	return b.String()
}

func (n *Node) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%%%d = %v", n.ID, n.Op)
	leaf := n.Op.IsLeaf()
	if leaf {
		b.WriteString(" " + n.Name)
	}
	for i, in := range n.In {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, " %%%d", in.ID)
	}
	if a := n.attrText(); a != "" {
		b.WriteString(" {" + a + "}")
	}
	fmt.Fprintf(&b, " : %v %v", n.Type, n.Shape)
	if !leaf && n.Name != "" {
		b.WriteString("   # " + n.Name)
	}
	return b.String()
}

// attrText prints the static arguments that the shape of the result does not show.
func (n *Node) attrText() string {
	if text := n.Op.def().text; text != nil {
		return text(&n.Attrs)
	}
	return ""
}

func textOfConst(a *Attrs) string { return dataText(a.Data) }
func textOfFill(a *Attrs) string  { return number(a.Value) }
func textOfClamp(a *Attrs) string { return number(a.Lo) + " to " + number(a.Hi) }
func textOfPerm(a *Attrs) string  { return fmt.Sprintf("perm %v", a.Perm) }
func textOfAxis(a *Attrs) string  { return fmt.Sprintf("axis %d", a.Axis) }
func textOfSlice(a *Attrs) string { return fmt.Sprintf("axis %d, %d to %d", a.Axis, a.Start, a.End) }

func textOfAxes(a *Attrs) string {
	if a.Keep {
		return fmt.Sprintf("axes %v keep", a.Axes)
	}
	return fmt.Sprintf("axes %v", a.Axes)
}

func textOfPad(a *Attrs) string {
	return fmt.Sprintf("axis %d, %d before, %d after", a.Axis, a.Start, a.End)
}

func textOfConv(a *Attrs) string {
	return fmt.Sprintf("stride %dx%d, pad %dx%d", a.Stride[0], a.Stride[1], a.Pad[0], a.Pad[1])
}

func textOfPool(a *Attrs) string {
	return fmt.Sprintf("kernel %dx%d, stride %dx%d", a.Kernel[0], a.Kernel[1], a.Stride[0], a.Stride[1])
}

// dataText prints a short literal in full, else its length and a hash.
func dataText(data []float64) string {
	if len(data) > 8 {
		h := fnv.New64a()
		for _, v := range data {
			fmt.Fprintf(h, "%x ", math.Float64bits(v))
		}
		return fmt.Sprintf("%d numbers, fnv %016x", len(data), h.Sum64())
	}
	parts := make([]string, len(data))
	for i, v := range data {
		parts[i] = number(v)
	}
	return strings.Join(parts, " ")
}

func number(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// DOT prints the graph in Graphviz syntax. Edges follow the data downwards. Inputs are boxes,
// parameters grey boxes, outputs double circles.
func (g *Graph) DOT() string {
	var b strings.Builder
	fmt.Fprintf(&b, "digraph %q {\n\tnode [shape=ellipse, fontname=\"Helvetica\", fontsize=10];\n\tedge "+
		"[arrowsize=0.6];\n", g.Name)
	for _, n := range g.Nodes {
		label := n.Op.String()
		if a := n.attrText(); a != "" {
			label += "\n" + a
		}
		style := ""
		switch n.Op {
		case OpInput:
			style = ", shape=box"
		case OpParam:
			style = ", shape=box, style=filled, fillcolor=lightgrey"
		}
		if n.Name != "" {
			label = n.Name + "\n" + label
		}
		fmt.Fprintf(&b, "\tn%d [label=%q%s];\n", n.ID, fmt.Sprintf("%s\n%v", label, n.Shape), style)
		for _, in := range n.In {
			fmt.Fprintf(&b, "\tn%d -> n%d;\n", in.ID, n.ID)
		}
	}
	for i, o := range g.Outputs {
		fmt.Fprintf(&b, "\to%d [label=%q, shape=doublecircle];\n\tn%d -> o%d;\n", i, o.Name, o.Node.ID, i)
	}
	b.WriteString("}\n")
	return b.String()
}
