// Spoiled graphs are found, and graphs print as expected.

package graph

import (
	"math"
	"strings"
	"testing"

	"github.com/miplc/miplc/internal/testkit/testsupport"
)

func TestText(t *testing.T) {
	g, err := attentionGraph().Graph()
	if err != nil {
		t.Fatal(err)
	}
	testsupport.CheckGolden(t, "testdata/attention.txt", g.Text())
	testsupport.CheckGolden(t, "testdata/attention.dot", g.DOT())
}

func TestVerifyFindsFaults(t *testing.T) {
	cases := []struct {
		name  string
		spoil func(g *Graph)
		want  string
	}{
		{"order", func(g *Graph) { g.Nodes[6].In[0] = g.Nodes[8] }, "comes after it"},
		{"id", func(g *Graph) { g.Nodes[3].ID = 4 }, "is at index 3"},
		{"foreign input", func(g *Graph) { g.Nodes[6].In[1] = &Node{ID: 2, Shape: Shape{3, 2}} }, "of another graph"},
		{"shape", func(g *Graph) { g.Nodes[6].Shape = Shape{N, 3} }, "the op table gives float [N, 2]"},
		{"type", func(g *Graph) { g.Nodes[6].Type = Int }, "is marked int"},
		{"input name", func(g *Graph) { g.Nodes[3].Name = "Wv" }, "name that no other input or parameter has"},
		{"output name", func(g *Graph) { g.Outputs[1].Name = "probabilities" }, "name that no other output has"},
		{"output node", func(g *Graph) { g.Outputs[0].Node = &Node{} }, "output probabilities is a node of another graph"},
		{"extent", func(g *Graph) { g.Nodes[0].Shape = Shape{N, -7} }, "extents are at least 1"},
		{"arity", func(g *Graph) { g.Nodes[7].In = nil }, "takes 1 inputs, has 0"},
	}
	for _, c := range cases {
		g, err := attentionGraph().Graph()
		if err != nil {
			t.Fatal(err)
		}
		if err := Verify(g); err != nil {
			t.Fatal(err)
		}
		c.spoil(g)
		if err := Verify(g); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}
}

// The printed form shows every static argument that cannot be inferred from the shape.
func TestTextShowsArguments(t *testing.T) {
	b := NewBuilder("arguments")
	x, w := b.Input("images", Float, Shape{N, 1, 11, 4}), b.Param("w", Shape{2, 1, 3, 3})
	two := [2]int{2, 2}
	y := b.MaxPool2D(b.Conv2D(x, w, [2]int{2, 1}, [2]int{1, 2}), two, two)
	flat := b.Reshape(y, Shape{N, 18})
	h := b.Concat(1, b.Slice(flat, 1, 0, 9), b.Pad(b.Slice(flat, 1, 9, 12), 1, 2, 4))
	h = b.Clamp(b.Mul(h, b.Fill(0.5, Shape{N, 1})), -1, 2.5)
	h = b.Add(b.Slice(h, 1, 0, 10), b.Const(Shape{10}, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10))
	h = b.Transpose(b.Mul(h, b.Max(h, true, 1)), 1, 0)
	b.Output("loss", b.Sum(b.Mul(h, b.Const(Shape{2, 1, 1}, 1, -0.25)), false, 0, 1, 2))
	g, err := Gradient(finished(t, b), "loss", []string{"w"})
	if err != nil {
		t.Fatal(err)
	}
	testsupport.CheckGolden(t, "testdata/arguments.txt", g.Text())
	testsupport.CheckGolden(t, "testdata/arguments.dot", g.DOT())
}

func TestApplyRejects(t *testing.T) {
	b := NewBuilder("reject")
	x, bagOf := b.Input("x", Float, Shape{N, 3}), b.Input("bag_of", Int, Shape{N})
	w, y := b.Param("w", Shape{3, 2}), b.Input("y", Float, Shape{B, 3})
	img, ker := b.Input("img", Float, Shape{N, 1, 5, 5}), b.Param("ker", Shape{2, 1, 3, 3})
	stranger := NewBuilder("other").Input("x", Float, Shape{N, 3})
	one := [2]int{1, 1}
	cases := []struct {
		op   Op
		a    Attrs
		in   []*Node
		want string
	}{
		{OpAdd, Attrs{}, []*Node{x}, "Add takes 2 inputs, has 1"},
		{OpConcat, Attrs{}, nil, "at least one input"},
		{OpExp, Attrs{}, []*Node{nil}, "input 0 was not built"},
		{OpExp, Attrs{}, []*Node{stranger}, "input 0 belongs to another graph"},
		{OpExp, Attrs{}, []*Node{bagOf}, "input 0 must be float"},
		{OpInput, Attrs{}, nil, "needs a name"},
		{Op(200), Attrs{}, nil, "unknown op"},
		{OpAdd, Attrs{}, []*Node{x, y}, "do not fit together: N against B"},
		{OpMatMul, Attrs{}, []*Node{w, x}, "inner extents differ"},
		{OpSegmentSum, Attrs{}, []*Node{x, y}, "the last input must be bag_of"},
		{OpSegmentSum, Attrs{}, []*Node{y, bagOf}, "needs one row per instance"},
		{OpSegmentGather, Attrs{}, []*Node{x, bagOf}, "needs one row per bag,"},
		{OpFill, Attrs{Shape: Shape{2, -5}}, nil, "extents are at least 1"},
		{OpFill, Attrs{Shape: Shape{0}}, nil, "extents are at least 1"},
		{OpFill, Attrs{Shape: Shape{1 << 32, 1 << 32, 1 << 32}}, nil, "too large"},
		{OpConst, Attrs{Shape: Shape{N}, Data: []float64{1}}, nil, "symbolic shape"},
		{OpConst, Attrs{Shape: Shape{2}, Data: []float64{1}}, nil, "has 2 numbers, 1 are given"},
		{OpPad, Attrs{Axis: 1, End: math.MaxInt}, []*Node{x}, "out of range"},
		{OpPad, Attrs{Axis: 0, End: 1}, []*Node{x}, "no constant extent"},
		{OpSlice, Attrs{Axis: 1, Start: 2, End: 2}, []*Node{x}, "is outside an axis of 3"},
		{OpClamp, Attrs{Lo: 2, Hi: 1}, []*Node{x}, "not below the upper bound"},
		{OpClamp, Attrs{Lo: math.NaN(), Hi: 1}, []*Node{x}, "not below the upper bound"},
		{OpSum, Attrs{Axes: []int{-1}}, []*Node{x}, "do not fit shape"},
		{OpMaxMask, Attrs{Axes: []int{1, 1}}, []*Node{x}, "do not fit shape"},
		{OpTranspose, Attrs{Perm: []int{0, 0}}, []*Node{x}, "not a permutation"},
		{OpReshape, Attrs{Shape: Shape{N, 4}}, []*Node{x}, "same number of elements"},
		{OpExpand, Attrs{Shape: Shape{B, 3}}, []*Node{x}, "cannot be broadcast"},
		{OpConv2D, Attrs{Stride: [2]int{0, 1}}, []*Node{img, ker}, "out of range"},
		{OpConv2D, Attrs{Stride: one, Pad: [2]int{math.MaxInt, 0}}, []*Node{img, ker}, "out of range"},
		{OpConv2DGradInput, Attrs{Stride: one, Shape: Shape{N, 1, 9, 9}}, []*Node{img, ker},
			"the gradient coming in has shape"},
		{OpMaxPool2D, Attrs{Kernel: [2]int{6, 1}, Stride: one}, []*Node{img}, "does not fit images"},
		{OpMaxPool2DGrad, Attrs{Kernel: one, Stride: [2]int{2, 2}}, []*Node{img, img}, "the gradient coming in has shape"},
	}
	for _, c := range cases {
		if _, err := b.Apply(c.op, c.a, c.in...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v %+v: got %v, want %q", c.op, c.a, err, c.want)
		}
	}
	if _, err := b.Graph(); err != nil {
		t.Errorf("Apply spoiled the builder: %v", err)
	}
	b.Input("bad", Float, Shape{-9})
	if _, err := b.Graph(); err == nil || !strings.Contains(err.Error(), "extents are at least 1") {
		t.Errorf("bad input: got %v", err)
	}
}
