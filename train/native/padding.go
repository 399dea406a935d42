package native

import (
	"slices"

	"github.com/miplc/miplc/graph"
)

// capacity is the number of instances that the machine for a batch of n
// instances in the given number of bags is built for. Machines are made for
// fixed sizes; rounding up by at most about one sixteenth keeps them few. It
// depends on the batch alone, so that a run can be repeated bit for bit.
func capacity(n, bags int) int {
	const exact, parts, least = 64, 16, 8
	if bags == 1 && n <= exact {
		return n // sizes of single bags are few
	}
	grain := least
	for grain*parts < n {
		grain *= 2
	}
	return (n + grain - 1) / grain * grain
}

// padded gives a copy of values, rows of equal width, with the last row
// repeated up to the capacity. Copies of a real instance are as finite as the
// instance is; zeros might divide by zero. dst is reused.
func padded(dst, values []float32, rows, capacity int) []float32 {
	width := len(values) / rows
	dst = append(dst[:0], values...)
	for range capacity - rows {
		dst = append(dst, values[(rows-1)*width:rows*width]...)
	}
	return dst
}

// paddable reports whether instances of no bag leave the results for the bags
// as they are: no node may mix instances except along the bags. A sum over all
// instances written in an equation, for one, would count the padding.
func paddable(g *graph.Graph) bool {
	for _, n := range g.Nodes {
		if mixes(n) {
			return false
		}
	}
	return true
}

// mixes reports whether one instance's row of a node depends on other
// instances, or the node on all, without asking for their bags.
func mixes(n *graph.Node) bool {
	if slices.Contains(n.Shape[min(1, len(n.Shape)):], graph.N) {
		return true // instances lie along an inner axis
	}
	if n.Op == graph.OpSegmentSum || n.Op == graph.OpSegmentMax {
		return false
	}
	has := slices.ContainsFunc(n.In, func(x *graph.Node) bool { return x.Type == graph.Float && perInstance(x) })
	switch {
	case has && !perInstance(n):
		return true // reduced
	case has && (n.Op == graph.OpSoftmax || n.Op == graph.OpLogSoftmax):
		return len(n.Shape) == 1
	case has && n.Op == graph.OpMaxMask:
		return slices.Contains(n.Attrs.Axes, 0)
	}
	return false
}

// perInstance reports whether a value has one row per instance.
func perInstance(n *graph.Node) bool { return len(n.Shape) > 0 && n.Shape[0] == graph.N }
