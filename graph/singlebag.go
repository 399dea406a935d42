// The pass SingleBag, which specialises a graph to one bag.

package graph

import "fmt"

// SingleBag specialises a graph to one bag that contains all instances. B becomes 1 in
// every shape; N stays symbolic. The input bag_of disappears, and the segment ops become Softmax along the instances,
// MatMul, Sum and Max. Attention pooling becomes MatMul(weights^T, H) and mean pooling MatMul(Softmax of zeros, H), so
// neither needs Sum, which portable files write as a product with a constant. The softmax of N zeros is the row of
// weights 1/N, because N is unknown until the graph runs.
func SingleBag(g *Graph) (*Graph, error) {
	g, err := Optimize(g)
	if err != nil {
		return nil, err
	}
	s := &singleBag{b: NewBuilder(g.Name), converted: make([]*Node, len(g.Nodes))}
	for _, n := range g.Nodes {
		if n.Type == Int {
			continue
		}
		before := s.b.Len()
		s.b.like(n)
		r := s.convert(n)
		if r.ID >= before {
			r.Name = n.Name
		}
		s.converted[n.ID] = r
	}
	for _, o := range g.Outputs {
		if o.Node.Type == Int {
			return nil, fmt.Errorf("output %s is bag_of, which a single bag does not have", o.Name)
		}
		s.b.Output(o.Name, s.full(o.Node))
	}
	return s.b.Optimized()
}

// singleBag maps every old node, by ID, to its new one. A new node may be a single row where the old one
// has N equal rows, because it was gathered from the only bag.
type singleBag struct {
	b         *Builder
	converted []*Node
}

// oneBag replaces B by 1.
func oneBag(s Shape) Shape {
	out := s.Clone()
	for i, d := range out {
		if d == B {
			out[i] = 1
		}
	}
	return out
}

// full returns the new node of n in its full shape.
func (s *singleBag) full(n *Node) *Node {
	x := s.converted[n.ID]
	if want := oneBag(n.Shape); !x.Shape.Equal(want) {
		x = s.b.Expand(x, want)
		s.converted[n.ID] = x
	}
	return x
}

func (s *singleBag) convert(n *Node) *Node {
	switch {
	case n.Op.IsLeaf():
		return s.b.leaf(n.Op, n.Name, n.Type, oneBag(n.Shape))
	case n.Op.IsSegment():
		return s.segment(n)
	case n.Op == OpDiv:
		if mean := s.mean(n); mean != nil {
			return mean
		}
	}
	in := make([]*Node, len(n.In))
	for i, x := range n.In {
		if n.rowwise(i) {
			in[i] = s.converted[x.ID]
		} else {
			in[i] = s.full(x)
		}
	}
	attrs := n.Attrs
	attrs.Shape = oneBag(attrs.Shape)
	return s.b.op(n.Op, attrs, in...)
}

// rowwise reports whether equal rows of input i give equal rows of the result, so that the input
// may stay a single row.
func (n *Node) rowwise(i int) bool {
	if n.Op.Elementwise() {
		return true
	}
	for k, x := range n.In {
		if k != i && !x.Shape.Static() {
			return false
		}
	}
	return len(n.CombinedRows(i)) == 0 && n.Attrs.Shape == nil
}

// fulls returns the new inputs of a segment op in full shape, without bag_of.
func (s *singleBag) fulls(n *Node) []*Node {
	in := make([]*Node, len(n.In)-1)
	for i := range in {
		in[i] = s.full(n.In[i])
	}
	return in
}

func (s *singleBag) segment(n *Node) *Node {
	x, alone, attrs := n.In[0], ops[n.Op].alone, Attrs{}
	switch alone {
	case OpExpand: // full repeats the row where it is needed
		return s.converted[x.ID]
	case OpSoftmax:
		return s.softmax(s.full(x))
	case OpSum:
		if w, h := Weighted(x); w != nil {
			return s.b.MatMul(s.b.Transpose(s.full(w), 1, 0), s.full(h))
		}
	}
	if ops[alone].arity == 1 {
		attrs = Attrs{Axes: []int{0}, Keep: n.Shape[0] == B}
	}
	return s.b.op(alone, attrs, s.fulls(n)...)
}

// Weighted returns the factors of instances h [N, d] multiplied by weights w [N, 1], or nil.
func Weighted(x *Node) (w, h *Node) {
	if x.Op != OpMul || len(x.Shape) != 2 {
		return nil, nil
	}
	w, h = x.In[0], x.In[1]
	if !w.Shape.Equal(Shape{N, 1}) {
		w, h = h, w
	}
	if !w.Shape.Equal(Shape{N, 1}) || !h.Shape.Equal(x.Shape) {
		return nil, nil
	}
	return w, h
}

// softmax moves the instances to the last axis, along which Softmax works, and back.
func (s *singleBag) softmax(x *Node) *Node {
	rank := len(x.Shape)
	if rank == 1 {
		row := s.b.Reshape(x, Shape{1, x.Shape[0]})
		return s.b.Reshape(s.b.Softmax(row), x.Shape)
	}
	there, back := make([]int, rank), make([]int, rank)
	for i := range rank {
		there[i] = (i + 1) % rank
		back[(i+1)%rank] = i
	}
	return s.b.Transpose(s.b.Softmax(s.b.Transpose(x, there...)), back...)
}

// mean recognises the mean over a bag, SegmentSum(x) / SegmentSum(Fill v), and returns it as a
// product with the row of weights 1/N, or nil for other quotients.
func (s *singleBag) mean(n *Node) *Node {
	sum, count := n.In[0], n.In[1]
	if sum.Op != OpSegmentSum || count.Op != OpSegmentSum || !n.Shape.Equal(sum.Shape) {
		return nil
	}
	v := count.In[0].Attrs.Value
	if count.In[0].Op != OpFill || v == 0 {
		return nil
	}
	x := s.full(sum.In[0])
	rest, _, _ := x.Shape[1:].volume()
	if !x.Shape[1:].Static() {
		return nil
	}
	flat := x
	if len(x.Shape) != 2 {
		flat = s.b.Reshape(x, Shape{N, Dim(rest)})
	}
	m := s.b.MatMul(s.b.Softmax(s.b.Fill(0, Shape{1, N})), flat)
	if v != 1 {
		m = s.b.Div(m, s.b.Scalar(v))
	}
	if want := oneBag(n.Shape); len(want) != 2 {
		m = s.b.Reshape(m, want)
	}
	return m
}
