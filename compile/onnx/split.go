// Slices of one value, cut by one node.

package onnx

import (
	"slices"

	"github.com/miplc/miplc/compile/graph"
	"github.com/miplc/miplc/internal/onnxpb"
)

// maxSplit is the maximum number of outputs of a Split node, so that it needs no more than the
// eight buffers that every WebGPU device binds at a time.
const maxSplit = 7

// cut is a value that slices divide along an axis.
type cut struct {
	of   *graph.Node
	axis int
}

// slice returns a slice, of which in is the input, along an axis of the ONNX value. If the slices of
// that input cover it from start to end in sequence, Split nodes make them all when the first is
// lowered.
func (e *emitter) slice(n *graph.Node, in string, axis int) string {
	a := &n.Attrs
	key := cut{n.In[0], a.Axis}
	parts, known := e.cuts[key]
	if !known {
		if starts, sizes := e.partition(key); len(sizes) > 1 {
			parts = map[int]string{}
			for i, name := range e.divide(in, sizes, attrs(onnxpb.IntAttr("axis", int64(axis)))) {
				parts[starts[i]] = name
			}
		}
		e.cuts[key] = parts
	}
	if parts != nil {
		return parts[a.Start]
	}
	return e.op("Slice", nil, in, e.ints(int64(a.Start)), e.ints(int64(a.End)), e.ints(int64(axis)))
}

// partition returns the starts and sizes of the slices of a value along an axis in sequence, or nothing
// if they overlap or do not cover the value.
func (e *emitter) partition(c cut) (starts []int, sizes []int64) {
	if e.live == nil {
		e.live = e.src.Live()
	}
	var parts []*graph.Node
	for _, n := range e.src.ByOp(graph.OpSlice) {
		if n.In[0] == c.of && n.Attrs.Axis == c.axis && e.live[n.ID] {
			parts = append(parts, n)
		}
	}
	slices.SortFunc(parts, func(m, n *graph.Node) int { return m.Attrs.Start - n.Attrs.Start })
	end := 0
	for _, n := range parts {
		if n.Attrs.Start != end {
			return nil, nil
		}
		starts, sizes, end = append(starts, n.Attrs.Start), append(sizes, int64(n.Attrs.End-n.Attrs.Start)), n.Attrs.End
	}
	if end != int(c.of.Shape[c.axis]) {
		return nil, nil
	}
	return starts, sizes
}

// divide divides a value: on a CPU in one Split node, on a device in nodes of at most maxSplit outputs, of
// which the last one is what remains.
func (e *emitter) divide(v string, sizes []int64, attributes []*onnxpb.AttributeProto) (names []string) {
	for len(sizes) > 1 {
		own := sizes
		if e.device && len(sizes) > maxSplit {
			own = slices.Clone(sizes[:maxSplit])
			for _, s := range sizes[maxSplit:] {
				own[maxSplit-1] += s
			}
		}
		parts := e.ops("Split", len(own), attributes, v, e.ints(own...))
		if len(own) == len(sizes) {
			return append(names, parts...)
		}
		names, v, sizes = append(names, parts[:maxSplit-1]...), parts[maxSplit-1], sizes[maxSplit-1:]
	}
	return append(names, v)
}
