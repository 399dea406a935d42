package gorgonia

import "github.com/miplc/miplc/graph"

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

// perInstance reports whether a value has one row per instance.
func perInstance(n *graph.Node) bool { return len(n.Shape) > 0 && n.Shape[0] == graph.N }
