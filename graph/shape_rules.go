// The shape of the result of each op.

package graph

import "fmt"

// shapeFunc returns the shape of a node, given its inputs and attributes, or an error that
// describes what the op needs.
type shapeFunc func(n *Node) (Shape, error)

func shapeSame(n *Node) (Shape, error) { return n.In[0].Shape.Clone(), nil }

func shapeAttr(n *Node) (Shape, error) { return n.Attrs.Shape.Clone(), nil }

func shapeConst(n *Node) (Shape, error) {
	size, ns, bs := n.Attrs.Shape.volume()
	if ns+bs > 0 {
		return nil, fmt.Errorf("a literal cannot have the symbolic shape %v", n.Attrs.Shape)
	}
	if size != len(n.Attrs.Data) {
		return nil, fmt.Errorf("shape %v has %d numbers, %d are given", n.Attrs.Shape, size, len(n.Attrs.Data))
	}
	return n.Attrs.Shape.Clone(), nil
}

func shapeClamp(n *Node) (Shape, error) {
	if !(n.Attrs.Lo <= n.Attrs.Hi) {
		return nil, fmt.Errorf("the lower bound %v is not below the upper bound %v", n.Attrs.Lo, n.Attrs.Hi)
	}
	return n.In[0].Shape.Clone(), nil
}

func shapeBroadcast(n *Node) (Shape, error) { return Broadcast(n.In[0].Shape, n.In[1].Shape) }

func shapeMatMul(n *Node) (Shape, error) {
	a, b := n.In[0].Shape, n.In[1].Shape
	if len(a) != 2 || len(b) != 2 {
		return nil, fmt.Errorf("both factors must be matrices, they are %v and %v", a, b)
	}
	if a[1] != b[0] {
		return nil, fmt.Errorf("inner extents differ: %v times %v", a, b)
	}
	return Shape{a[0], b[1]}, nil
}

func shapeTranspose(n *Node) (Shape, error) {
	x, perm := n.In[0].Shape, n.Attrs.Perm
	if len(perm) != len(x) {
		return nil, fmt.Errorf("permutation %v does not fit shape %v", perm, x)
	}
	out, seen := make(Shape, len(x)), make([]bool, len(x))
	for i, p := range perm {
		if p < 0 || p >= len(x) || seen[p] {
			return nil, fmt.Errorf("%v is not a permutation of the axes of %v", perm, x)
		}
		seen[p] = true
		out[i] = x[p]
	}
	return out, nil
}

func shapeReshape(n *Node) (Shape, error) {
	s0, n0, b0 := n.In[0].Shape.volume()
	s1, n1, b1 := n.Attrs.Shape.volume()
	if s0 != s1 || n0 != n1 || b0 != b1 {
		return nil, fmt.Errorf("%v and %v do not have the same number of elements", n.In[0].Shape, n.Attrs.Shape)
	}
	return n.Attrs.Shape.Clone(), nil
}

func shapeExpand(n *Node) (Shape, error) {
	s, err := Broadcast(n.In[0].Shape, n.Attrs.Shape)
	if err != nil || !s.Equal(n.Attrs.Shape) {
		return nil, fmt.Errorf("%v cannot be broadcast to %v", n.In[0].Shape, n.Attrs.Shape)
	}
	return s, nil
}

func shapeReduce(n *Node) (Shape, error) {
	x := n.In[0].Shape
	reduced := make([]bool, len(x))
	last := -1
	for _, a := range n.Attrs.Axes {
		if a <= last || a >= len(x) {
			return nil, fmt.Errorf("axes %v do not fit shape %v", n.Attrs.Axes, x)
		}
		last = a
		reduced[a] = true
	}
	out := Shape{}
	for i, d := range x {
		switch {
		case !reduced[i]:
			out = append(out, d)
		case n.Attrs.Keep:
			out = append(out, 1)
		}
	}
	return out, nil
}

func shapeMaxMask(n *Node) (Shape, error) {
	if _, err := shapeReduce(n); err != nil {
		return nil, err
	}
	return n.In[0].Shape.Clone(), nil
}

// axisOf returns the size of an axis, which must be constant.
func axisOf(x Shape, axis int) (int, error) {
	if axis < 0 || axis >= len(x) {
		return 0, fmt.Errorf("axis %d does not exist in shape %v", axis, x)
	}
	if x[axis] < 0 {
		return 0, fmt.Errorf("axis %d of shape %v has no constant extent", axis, x)
	}
	return int(x[axis]), nil
}

func shapeConcat(n *Node) (Shape, error) {
	axis, out := n.Attrs.Axis, n.In[0].Shape.Clone()
	total := 0
	for _, in := range n.In {
		extent, err := axisOf(in.Shape, axis)
		if err != nil {
			return nil, err
		}
		total += extent
		other := in.Shape.Clone()
		if len(other) == len(out) {
			other[axis] = out[axis]
		}
		if !other.Equal(out) {
			return nil, fmt.Errorf("shapes %v and %v cannot be joined along axis %d", n.In[0].Shape, in.Shape, axis)
		}
	}
	out[axis] = Dim(total)
	return out, nil
}

func shapeSlice(n *Node) (Shape, error) {
	out := n.In[0].Shape.Clone()
	extent, err := axisOf(out, n.Attrs.Axis)
	if err != nil {
		return nil, err
	}
	if n.Attrs.Start < 0 || n.Attrs.End > extent || n.Attrs.Start >= n.Attrs.End {
		return nil, fmt.Errorf("the range %d to %d is outside an axis of %d", n.Attrs.Start, n.Attrs.End, extent)
	}
	out[n.Attrs.Axis] = Dim(n.Attrs.End - n.Attrs.Start)
	return out, nil
}

func shapePad(n *Node) (Shape, error) {
	out := n.In[0].Shape.Clone()
	extent, err := axisOf(out, n.Attrs.Axis)
	if err != nil {
		return nil, err
	}
	if n.Attrs.Start < 0 || n.Attrs.End < 0 || n.Attrs.Start > maxSize || n.Attrs.End > maxSize {
		return nil, fmt.Errorf("padding %d, %d is out of range", n.Attrs.Start, n.Attrs.End)
	}
	out[n.Attrs.Axis] = Dim(extent + n.Attrs.Start + n.Attrs.End)
	return out, nil
}

func shapeRows(n *Node) (Shape, error) {
	x := n.In[0].Shape
	if len(x) == 0 {
		return nil, fmt.Errorf("a scalar has no last axis")
	}
	return x.Clone(), nil
}

// shapeOfRows is the rule of ops that map rows along one symbol to rows along another.
func shapeOfRows(from, to Dim) shapeFunc {
	return func(n *Node) (Shape, error) {
		x := n.In[0].Shape
		if len(x) == 0 || x[0] != from {
			what := "instance"
			if from == B {
				what = "bag"
			}
			return nil, fmt.Errorf("needs one row per %s, [%v, ...], not %v", what, from, x)
		}
		return append(Shape{to}, x[1:]...), nil
	}
}

func shapeConv2D(n *Node) (Shape, error) { return convolved(n.In[0].Shape, n.In[1].Shape, &n.Attrs) }

// shapeConv2DGradInput checks that dy has the shape of the convolution of an image of shape
// Attrs.Shape.
func shapeConv2DGradInput(n *Node) (Shape, error) {
	y, err := convolved(n.Attrs.Shape, n.In[1].Shape, &n.Attrs)
	return gradientOf(n.Attrs.Shape, y, n.In[0].Shape, err)
}

// shapeConv2DGradWeight checks that dy has the shape of the convolution with a kernel of shape
// Attrs.Shape.
func shapeConv2DGradWeight(n *Node) (Shape, error) {
	y, err := convolved(n.In[0].Shape, n.Attrs.Shape, &n.Attrs)
	return gradientOf(n.Attrs.Shape, y, n.In[1].Shape, err)
}

func shapeMaxPool2DGrad(n *Node) (Shape, error) {
	y, err := shapeMaxPool2D(n)
	return gradientOf(n.In[0].Shape, y, n.In[1].Shape, err)
}

// gradientOf returns x, the shape of a gradient, if dy has the shape y of the forward result.
func gradientOf(x, y, dy Shape, err error) (Shape, error) {
	if err != nil {
		return nil, err
	}
	if !dy.Equal(y) {
		return nil, fmt.Errorf("the gradient coming in has shape %v, the result has %v", dy, y)
	}
	return x.Clone(), nil
}

// convolved returns the shape of x convolved with w.
func convolved(x, w Shape, a *Attrs) (Shape, error) {
	if len(x) != 4 || len(w) != 4 || !x[1:].Static() || !w.Static() {
		return nil, fmt.Errorf("needs images [N, channels, height, width] and kernels [out, in, height, width], "+
			"has %v and %v", x, w)
	}
	if x[1] != w[1] {
		return nil, fmt.Errorf("images have %v channels, kernels expect %v", x[1], w[1])
	}
	out := Shape{x[0], w[0], 0, 0}
	for i := range 2 {
		if a.Stride[i] < 1 || a.Pad[i] < 0 || a.Pad[i] > maxSize {
			return nil, fmt.Errorf("stride %v or padding %v is out of range", a.Stride, a.Pad)
		}
		room := int(x[2+i]) + 2*a.Pad[i] - int(w[2+i])
		if room < 0 {
			return nil, fmt.Errorf("a kernel of %vx%v does not fit images of %vx%v", w[2], w[3], x[2], x[3])
		}
		out[2+i] = Dim(room/a.Stride[i] + 1)
	}
	return out, nil
}

func shapeMaxPool2D(n *Node) (Shape, error) {
	x, a := n.In[0].Shape, &n.Attrs
	if len(x) != 4 || !x[1:].Static() {
		return nil, fmt.Errorf("needs images [N, channels, height, width], has %v", x)
	}
	out := x.Clone()
	for i := range 2 {
		if a.Kernel[i] < 1 || a.Stride[i] < 1 {
			return nil, fmt.Errorf("window %v or stride %v is out of range", a.Kernel, a.Stride)
		}
		if int(x[2+i]) < a.Kernel[i] {
			return nil, fmt.Errorf("a window of %dx%d does not fit images of %vx%v", a.Kernel[0], a.Kernel[1], x[2], x[3])
		}
		out[2+i] = Dim((int(x[2+i])-a.Kernel[i])/a.Stride[i] + 1)
	}
	return out, nil
}
