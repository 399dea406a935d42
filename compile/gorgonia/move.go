// Concatenation, slices and padding.

package gorgonia

import (
	"gorgonia.org/gorgonia"

	"github.com/miplc/miplc/compile/graph"
	"github.com/miplc/miplc/internal/ndarray"
)

// Ops that cut and concatenate along one axis. A value is a number of outer blocks, each of width
// elements: the size of the axis times that of all axes inside it.

// cut copies a part of each wide block, starting at offset, to the narrow blocks.
func cut[T Float](narrow, wide []T, outer, width, wideWidth, offset int) {
	for o := range outer {
		copy(narrow[o*width:(o+1)*width], wide[o*wideWidth+offset:])
	}
}

// paste is the inverse of cut. It does not change the rest of wide.
func paste[T Float](wide, narrow []T, outer, width, wideWidth, offset int) {
	for o := range outer {
		copy(wide[o*wideWidth+offset:], narrow[o*width:(o+1)*width])
	}
}

// lowerConcat lowers the concatenation along an axis.
func lowerConcat[T Float](l *lowerer[T], n *graph.Node, in []*gorgonia.Node) *gorgonia.Node {
	shape, axis := l.concrete(n), n.Attrs.Axis
	outer, step := ndarray.Blocks(shape, axis)
	wide := shape[axis] * step
	widths, offsets := make([]int, len(in)), make([]int, len(in))
	at := 0
	for i, x := range in {
		widths[i], offsets[i] = shapeOf(x)[axis]*step, at
		at += widths[i]
	}
	run := func(out []T, in [][]T, _ []int) {
		for i, x := range in {
			paste(out, x, outer, widths[i], wide, offsets[i])
		}
	}
	back := func(i int) kernel[T] {
		return func(out []T, in [][]T, _ []int) { cut(out, in[0], outer, widths[i], wide, offsets[i]) }
	}
	return l.linear(n, run, back, in...)
}

// lowerPart lowers Slice (elements Start to End of an axis) and Pad (Start zeros before the input);
// each is the gradient of the other.
func lowerPart[T Float](l *lowerer[T], n *graph.Node, in []*gorgonia.Node) *gorgonia.Node {
	shape, axis := l.concrete(n), n.Attrs.Axis
	outer, step := ndarray.Blocks(shape, axis)
	width, wide, offset := shape[axis]*step, shapeOf(in[0])[axis]*step, n.Attrs.Start*step
	take := func(out []T, in [][]T, _ []int) { cut(out, in[0], outer, width, wide, offset) }
	put := func(out []T, in [][]T, _ []int) {
		clear(out)
		paste(out, in[0], outer, width, wide, offset)
	}
	run, back := kernel[T](take), kernel[T](put)
	if n.Op == graph.OpPad {
		width, wide = wide, width
		run, back = put, take
	}
	return l.linear(n, run, func(int) kernel[T] { return back }, in...)
}
