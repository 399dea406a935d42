// Ops on images.

package onnx

import (
	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/internal/onnxpb"
)

// frame returns the attribute pads: zeros before height and width, then after.
func frame(pad, more [2]int) *onnxpb.AttributeProto {
	return onnxpb.IntsAttr("pads", pad[0], pad[1], pad[0]+more[0], pad[1]+more[1])
}

// extents returns height and width of a shape [.., .., height, width].
func extents(s graph.Shape) []int { return ndarray.Convert[int](s[2:]) }

func lowerConv2D(e *emitter, n *graph.Node, in []string) string {
	a := &n.Attrs
	return e.op("Conv", attrs(
		onnxpb.IntsAttr("kernel_shape", extents(n.In[1].Shape)...),
		frame(a.Pad, [2]int{}),
		onnxpb.IntsAttr("strides", a.Stride[:]...),
	), in[0], in[1])
}

// lowerConv2DGradInput computes the gradient of the images as the transposed convolution. Rows and
// columns that no window reached get zeros from output_padding.
func lowerConv2DGradInput(e *emitter, n *graph.Node, in []string) string {
	a := &n.Attrs
	kernel, dy, x := extents(n.In[1].Shape), extents(n.In[0].Shape), extents(a.Shape)
	var rest [2]int
	for i := range rest {
		rest[i] = x[i] - ((dy[i]-1)*a.Stride[i] + kernel[i] - 2*a.Pad[i])
		if rest[i] < 0 || rest[i] >= a.Stride[i] {
			graph.Fail("%v does not belong to images %v", n.In[0].Shape, a.Shape)
		}
	}
	return e.op("ConvTranspose", attrs(
		onnxpb.IntsAttr("kernel_shape", kernel...),
		onnxpb.IntsAttr("output_padding", rest[:]...),
		frame(a.Pad, [2]int{}),
		onnxpb.IntsAttr("strides", a.Stride[:]...),
	), in[0], in[1])
}

// lowerConv2DGradWeight computes the gradient of the kernels as the convolution of the images with
// dy, with instances in the role of channels and the stride as dilation. Rows and columns that no
// window reached are removed before.
func lowerConv2DGradWeight(e *emitter, n *graph.Node, in []string) string {
	a := &n.Attrs
	images, dy, kernel := extents(n.In[0].Shape), extents(n.In[1].Shape), extents(a.Shape)
	x := in[0]
	var more [2]int
	for i := range more {
		used := (dy[i]-1)*a.Stride[i] + kernel[i]
		more[i] = used - images[i] - 2*a.Pad[i]
		if cut := -more[i] - a.Pad[i]; cut > 0 { // cutting only the padding is not enough
			x = e.op("Slice", nil, x, e.ints(0), e.ints(int64(images[i]-cut)), e.ints(int64(2+i)))
			more[i] += cut
		}
	}
	swap := onnxpb.IntsAttr("perm", 1, 0, 2, 3)
	return e.op("Transpose", attrs(swap), e.op("Conv", attrs(
		onnxpb.IntsAttr("dilations", a.Stride[:]...),
		onnxpb.IntsAttr("kernel_shape", dy...),
		frame(a.Pad, more),
	), e.op("Transpose", attrs(swap), x), e.op("Transpose", attrs(swap), in[1])))
}

// lowerMaxPool2D writes no dilations, because onnx-go rejects them.
func lowerMaxPool2D(e *emitter, n *graph.Node, in []string) string {
	return e.op("MaxPool", window(&n.Attrs), in[0])
}

func window(a *graph.Attrs) []*onnxpb.AttributeProto {
	return attrs(onnxpb.IntsAttr("kernel_shape", a.Kernel[:]...), onnxpb.IntsAttr("strides", a.Stride[:]...))
}

// lowerMaxPool2DGrad scatters dy to the indices of the maxima; MaxPool returns the first of equal
// ones. If windows overlap, several of them may share a maximum, so the values are added, which
// needs opset 16. MaxUnpool could handle the other case, but few runtimes have it.
func lowerMaxPool2DGrad(e *emitter, n *graph.Node, in []string) string {
	a := &n.Attrs
	index := e.ops("MaxPool", 2, window(a), in[0])[1]
	shape := e.op("Shape", nil, in[0])
	scatter := attrs(onnxpb.IntAttr("axis", 0))
	if a.Stride[0] < a.Kernel[0] || a.Stride[1] < a.Kernel[1] {
		scatter = append(scatter, onnxpb.StringAttr("reduction", "add"))
	}
	zeros := e.constantOfShape(0, e.op("Shape", nil, e.op("Reshape", nil, in[0], e.ints(-1))))
	sum := e.op("ScatterElements", scatter,
		zeros, e.op("Reshape", nil, index, e.ints(-1)), e.op("Reshape", nil, in[1], e.ints(-1)))
	return e.op("Reshape", nil, sum, shape)
}
