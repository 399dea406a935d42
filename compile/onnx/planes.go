// Images as planes, on which convolutions of training steps are fast.

package onnx

import (
	"fmt"
	"slices"

	"github.com/miplc/miplc/compile/graph"
	"github.com/miplc/miplc/internal/onnxpb"
)

// Images as planes: [channel, height, width, N], instances innermost. A convolution is then one
// matrix product, kernels [out, taps] times the gathered taps [taps, positions N]; the gradient of
// its kernels is one too and reuses the taps. Gathering, splitting into windows and reassembling
// copy N consecutive numbers at a time. On a CPU this is faster than onnxruntime's Conv and MaxPool with indices
// for bags of about ten images.

// maxTaps bounds the gathered taps of one image. They stay in memory from the forward to the
// backward pass, so larger images use onnxruntime's Conv.
const maxTaps = 1 << 16

// onPlanes lowers the node on planes if that is faster. If it returns false, the node is lowered by
// the table.
func (e *emitter) onPlanes(n *graph.Node) bool {
	switch {
	case n.Op == graph.OpConv2D:
		return e.planeConv(n)
	case n.Op == graph.OpConv2DGradWeight:
		return e.planeGradWeight(n)
	case n.Op == graph.OpMaxPool2D && disjointWindows(&n.Attrs):
		e.plane[n] = e.windowsOf(n.In[0], &n.Attrs).top
		return true
	case n.Op == graph.OpMaxPool2DGrad && disjointWindows(&n.Attrs):
		e.plane[n] = e.maxPoolGrad(n.In[0], n.In[1], &n.Attrs)
		return true
	case n.Op.Elementwise():
		return e.planeElementwise(n)
	case n.Op == graph.OpSum && e.plane[n.In[0]] != "" && slices.Equal(n.Attrs.Axes, []int{0, 2, 3}):
		sum := e.op("ReduceSum", attrs(attrKeep(false)), e.plane[n.In[0]], e.ints(1, 2, 3))
		e.values[n] = e.reshape(sum, n.Shape)
		return true
	case n.Op == graph.OpReshape && e.plane[n.In[0]] != "" && len(n.Shape) == 2 && n.Shape[0] == graph.N:
		e.values[n] = e.transpose(e.reshape(e.plane[n.In[0]], graph.Shape{n.Shape[1], graph.N}))
		return true
	}
	return false
}

// disjointWindows reports whether no two windows share an element.
func disjointWindows(a *graph.Attrs) bool { return a.Stride == a.Kernel }

// asPlane returns images as planes.
func (e *emitter) asPlane(n *graph.Node) string {
	if v := e.plane[n]; v != "" {
		return v
	}
	c, h, w := n.Shape[1], n.Shape[2], n.Shape[3]
	rows := e.reshape(e.values[n], graph.Shape{graph.N, c * h * w})
	e.plane[n] = e.reshape(e.transpose(rows), graph.Shape{c, h, w, graph.N})
	return e.plane[n]
}

// value returns the value of a node, as [N, channel, height, width] for images.
func (e *emitter) value(n *graph.Node) string {
	plane := e.plane[n]
	if e.values[n] != "" || plane == "" {
		return e.values[n]
	}
	c, h, w := n.Shape[1], n.Shape[2], n.Shape[3]
	e.values[n] = e.reshape(e.transpose(e.reshape(plane, graph.Shape{c * h * w, graph.N})), n.Shape)
	return e.values[n]
}

// images reports whether a shape is [N, channel, height, width].
func images(s graph.Shape) bool { return len(s) == 4 && s[0] == graph.N }

// planeElementwise computes on planes if one operand already is on planes and the others are
// images, one number per channel, or one number.
func (e *emitter) planeElementwise(n *graph.Node) bool {
	if !images(n.Shape) || !slices.ContainsFunc(n.In, func(x *graph.Node) bool { return e.plane[x] != "" }) {
		return false
	}
	in := make([]string, len(n.In))
	for i, x := range n.In {
		s := x.Shape
		switch {
		case s.Equal(n.Shape):
			in[i] = e.asPlane(x)
		case len(s) == 4 && s[0] == 1 && s[2] == 1 && s[3] == 1:
			in[i] = e.reshape(e.values[x], graph.Shape{s[1], 1, 1, 1})
		case len(s) == 0:
			in[i] = e.values[x]
		default:
			return false
		}
	}
	e.plane[n] = table[n.Op].full.Lower(e, n, in)
	return true
}

// planeConv computes the product of the kernels and the taps. It returns false if there are too
// many taps.
func (e *emitter) planeConv(n *graph.Node) bool {
	w := n.In[1].Shape
	taps, ok := e.taps(n.In[0], w, n.Shape, &n.Attrs)
	if !ok {
		return false
	}
	kernels := e.reshape(e.value(n.In[1]), graph.Shape{w[0], w[1] * w[2] * w[3]})
	y := e.op("MatMul", nil, kernels, taps)
	e.plane[n] = e.reshape(y, graph.Shape{n.Shape[1], n.Shape[2], n.Shape[3], graph.N})
	return true
}

// planeGradWeight computes the product of dy and the taps, over all positions of all images.
func (e *emitter) planeGradWeight(n *graph.Node) bool {
	x, dy, w := n.In[0], n.In[1], n.Shape
	taps, ok := e.taps(x, w, dy.Shape, &n.Attrs)
	if !ok {
		return false
	}
	rows := e.op("Reshape", nil, e.asPlane(dy), e.ints(int64(w[0]), -1))
	product := e.product(rows, e.transpose(taps))
	e.values[n] = e.reshape(product, w)
	return true
}

// taps gathers what each tap of the kernels w reads at each position of the result y: [channel kh
// kw, oh ow N]. ok is false if there are more than maxTaps.
func (e *emitter) taps(x *graph.Node, w, y graph.Shape, a *graph.Attrs) (string, bool) {
	c, kh, kw := int(w[1]), int(w[2]), int(w[3])
	oh, ow := int(y[2]), int(y[3])
	if c*kh*kw*oh*ow > maxTaps {
		return "", false
	}
	key := fmt.Sprint("taps", x.ID, w[1:], y[2:], a.Stride, a.Pad)
	return e.once(key, func() string {
		h, width := int(x.Shape[2])+2*a.Pad[0], int(x.Shape[3])+2*a.Pad[1]
		plane := e.asPlane(x)
		if a.Pad != [2]int{} {
			p, q := int64(a.Pad[0]), int64(a.Pad[1])
			plane = e.op("Pad", nil, plane, e.ints(0, p, q, 0, 0, p, q, 0))
		}
		var index []int64
		for tap := range c * kh * kw {
			ch, ky, kx := tap/(kh*kw), tap/kw%kh, tap%kw
			for at := range oh * ow {
				row, column := at/ow*a.Stride[0]+ky, at%ow*a.Stride[1]+kx
				index = append(index, int64((ch*h+row)*width+column))
			}
		}
		name := e.initializer(onnxpb.IntTensor(e.unique(e.base+".taps"), []int64{int64(len(index))}, index))
		rows := e.op("Reshape", nil, plane, e.ints(int64(c*h*width), -1))
		return e.op("Reshape", nil, e.op("Gather", nil, rows, name), e.ints(int64(c*kh*kw), -1))
	}), true
}

// windows is a max-pooling in two steps: over the columns of each window, then over its rows. This
// order finds the first of equal maxima in row-major order.
type windows struct {
	columns []string // parts [c oh kh ow, 1, N], one for each column of a window
	widest  string   // their maximum
	rows    []string // parts [c oh, 1, ow N] of that maximum, one for each row
	highest string   // their maximum
	top     string   // the same as planes
}

func (e *emitter) windowsOf(x *graph.Node, a *graph.Attrs) *windows {
	key := fmt.Sprint(x.ID, a.Kernel)
	if w := e.pooled[key]; w != nil {
		return w
	}
	c := int64(x.Shape[1])
	h, width := int64(x.Shape[2]), int64(x.Shape[3])
	kh, kw := int64(a.Kernel[0]), int64(a.Kernel[1])
	oh, ow := h/kh, width/kw
	plane := e.asPlane(x)
	if oh*kh != h || ow*kw != width { // cut off what no window covers
		plane = e.op("Slice", nil, plane, e.ints(0, 0), e.ints(oh*kh, ow*kw), e.ints(1, 2))
	}
	w := &windows{}
	w.columns, w.widest = e.parts(e.op("Reshape", nil, plane, e.ints(c*oh*kh*ow, kw, -1)), kw)
	w.rows, w.highest = e.parts(e.op("Reshape", nil, w.widest, e.ints(c*oh, kh, -1)), kh)
	w.top = e.op("Reshape", nil, w.highest, e.ints(c, oh, ow, -1))
	e.pooled[key] = w
	return w
}

// parts splits a value along its axis 1 into pieces of size 1 and computes their maximum.
func (e *emitter) parts(v string, count int64) (parts []string, top string) {
	if count == 1 {
		return []string{v}, v
	}
	ones := slices.Repeat([]int64{1}, int(count))
	parts = e.ops("Split", len(ones), attrs(onnxpb.IntAttr("axis", 1)), v, e.ints(ones...))
	return parts, e.op("Max", nil, parts...)
}

// maxPoolGrad computes the gradient of a max-pooling: dy goes to the first maximum of each window, first
// among its rows, then among the columns of that row.
func (e *emitter) maxPoolGrad(x, dy *graph.Node, a *graph.Attrs) string {
	w := e.windowsOf(x, a)
	c, h, width := int64(x.Shape[1]), int64(x.Shape[2]), int64(x.Shape[3])
	kh, kw := int64(a.Kernel[0]), int64(a.Kernel[1])
	oh, ow := h/kh, width/kw
	g := e.op("Reshape", nil, e.asPlane(dy), e.ints(c*oh, 1, -1))
	g = e.toFirst(g, w.rows, w.highest)
	g = e.op("Reshape", nil, g, e.ints(c*oh*kh*ow, 1, -1))
	g = e.toFirst(g, w.columns, w.widest)
	g = e.op("Reshape", nil, g, e.ints(c, oh*kh, ow*kw, -1))
	if oh*kh != h || ow*kw != width {
		g = e.op("Pad", nil, g, e.ints(0, 0, 0, 0, 0, h-oh*kh, width-ow*kw, 0))
	}
	return g
}

// toFirst distributes g along axis 1: to the first of the parts that equals their maximum, zero to
// the others.
func (e *emitter) toFirst(g string, parts []string, top string) string {
	if len(parts) == 1 {
		return g
	}
	shares := make([]string, len(parts))
	for i, part := range parts[:len(parts)-1] {
		shares[i] = e.op("Mul", nil, g, e.toFloat(e.op("Equal", nil, part, top)))
		g = e.op("Sub", nil, g, shares[i])
	}
	shares[len(parts)-1] = g
	return e.op("Concat", attrs(onnxpb.IntAttr("axis", 1)), shares...)
}
