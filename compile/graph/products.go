// The passes on matrix products: JoinProducts, JoinNarrow and ScaleWeights.

package graph

import (
	"slices"
)

// JoinProducts computes sums of matrix products with one row per instance as one product:
// A X + B Y = [A B] [X; Y]. Without it, every product of a sum is stored separately, and for large
// bags these products need most of the memory of a gradient. The joined product adds in another
// order, so results can differ by rounding errors.
func JoinProducts(g *Graph) (*Graph, error) {
	counts := uses(g)
	product := func(n *Node) bool {
		return n.Op == OpMatMul && len(n.Shape) == 2 && perInstance(n) && counts[n.ID] == 1 && n.In[1].Shape.Static()
	}
	joined, err := rewrite(g, func(b *Builder, n *Node, in []*Node) *Node {
		if n.Op != OpAdd || counts[n.ID] == 0 {
			return nil
		}
		// a sum that is one product already
		joinedSum := n.In[0].Op == OpAdd && counts[n.In[0].ID] == 1 && in[0].Op == OpMatMul
		if !product(n.In[0]) && !joinedSum || !product(n.In[1]) || in[1].Op != OpMatMul || !n.Shape.Equal(in[0].Shape) {
			return nil
		}
		x, y := in[0], in[1]
		return b.MatMul(b.Concat(1, append(parts(x.In[0]), parts(y.In[0])...)...),
			b.Concat(0, append(parts(x.In[1]), parts(y.In[1])...)...))
	})
	if err != nil {
		return nil, err
	}
	return DeadCode(joined)
}

// parts returns the inputs of a concatenation, or n itself.
func parts(n *Node) []*Node {
	if n.Op == OpConcat {
		return append([]*Node(nil), n.In...)
	}
	return []*Node{n}
}

// maxNarrow is the largest number of columns of a joined product. onnxruntime multiplies 16 columns at
// a time, so a wider product takes as long as its parts.
const maxNarrow = 16

// JoinNarrow computes products of one value with several narrow ones as one product, whose columns are
// the results: X A and X B are columns of X [A B]. The rows of biases added to these products, and
// the sums of the columns of A and B, are joined as well. The two gates of gated attention and their
// gradients are an example. It applies to products over instances, where X is large.
func JoinNarrow(g *Graph) (*Graph, error) {
	j := &narrowJoins{graph: g, uses: uses(g), readers: map[*Node][]*Node{}, bundleOf: map[*Node]*bundle{}}
	j.plan()
	if len(j.bundleOf) == 0 {
		return g, nil
	}
	b := NewBuilder(g.Name)
	placed := make([]*Node, len(g.Nodes))
	b.walk(g, func(n *Node, in []*Node) *Node {
		b.like(n)
		if to := j.bundleOf[n]; to != nil {
			placed[n.ID] = to.part(b, n, placed)
		} else {
			placed[n.ID] = b.copy(n, in)
		}
		return placed[n.ID]
	})
	b.copyOutputs(g, placed)
	return b.Optimized()
}

// bundle is a list of nodes that become the columns of one node.
type bundle struct {
	members  []*Node
	operands []*Node // for each member, the input that the other members do not share: a right factor or a bias
	// join adds the joined node, given the concatenation of all operands.
	join   func(b *Builder, operands *Node, placed []*Node) *Node
	joined *Node
}

// part returns the columns of a member.
func (t *bundle) part(b *Builder, n *Node, placed []*Node) *Node {
	if t.joined == nil {
		var operands []*Node
		for _, x := range t.operands {
			operands = append(operands, placed[x.ID])
		}
		t.joined = t.join(b, b.Concat(len(operands[0].Shape)-1, operands...), placed)
		t.joined.Name = n.Name
	}
	axis, start := len(n.Shape)-1, 0
	for _, m := range t.members[:slices.Index(t.members, n)] {
		start += columns(m)
	}
	return b.Slice(t.joined, axis, start, start+columns(n))
}

func columns(n *Node) int { return int(n.Shape[len(n.Shape)-1]) }

// narrowJoins plans which nodes are joined.
type narrowJoins struct {
	graph    *Graph
	uses     []int
	readers  map[*Node][]*Node
	bundleOf map[*Node]*bundle
}

func (j *narrowJoins) plan() {
	for _, n := range j.graph.Nodes {
		for _, x := range n.In {
			j.readers[x] = append(j.readers[x], n)
		}
	}
	for _, x := range j.graph.Nodes {
		if len(x.Shape) != 2 || !slices.Contains(x.Shape, N) {
			continue
		}
		if products := j.products(x); products != nil {
			j.biases(products)
			j.sums(products)
		}
	}
}

// products plans the narrow products with the left factor x. Their right factors must be known before the
// first of them.
func (j *narrowJoins) products(x *Node) *bundle {
	t := &bundle{join: func(b *Builder, right *Node, placed []*Node) *Node { return b.MatMul(placed[x.ID], right) }}
	width := 0
	for _, n := range j.readers[x] {
		fits := n.Op == OpMatMul && n.In[0] == x && n.In[1] != x && len(n.Shape) == 2 && n.Shape[1] > 0
		if fits && width+columns(n) <= maxNarrow {
			t.members, t.operands, width = append(t.members, n), append(t.operands, n.In[1]), width+columns(n)
		}
	}
	return j.add(t)
}

// add plans a bundle of at least two members, if it can be computed where the first of them is.
func (j *narrowJoins) add(t *bundle) *bundle {
	if len(t.members) < 2 {
		return nil
	}
	byID := func(m, n *Node) int { return m.ID - n.ID }
	if slices.MaxFunc(t.operands, byID).ID > slices.MinFunc(t.members, byID).ID {
		return nil
	}
	for _, n := range t.members {
		j.bundleOf[n] = t
	}
	return t
}

// biases plans the additions of biases to products, if nothing else reads a product.
func (j *narrowJoins) biases(products *bundle) {
	t := &bundle{join: func(b *Builder, bias *Node, _ []*Node) *Node { return b.Add(products.joined, bias) }}
	for _, p := range products.members {
		if j.uses[p.ID] != 1 || len(j.readers[p]) != 1 {
			return
		}
		n := j.readers[p][0]
		if n.Op != OpAdd || n.In[0] != p || len(n.In[1].Shape) != 1 || columns(n.In[1]) != columns(p) {
			return
		}
		t.members, t.operands = append(t.members, n), append(t.operands, n.In[1])
	}
	j.add(t)
}

// sums plans the sums of the columns of the right factors.
func (j *narrowJoins) sums(products *bundle) {
	t := &bundle{join: func(b *Builder, right *Node, _ []*Node) *Node { return b.Sum(right, false, 0) }}
	for _, x := range products.operands {
		for _, n := range j.readers[x] {
			if n.Op == OpSum && slices.Equal(n.Attrs.Axes, []int{0}) && !n.Attrs.Keep {
				t.members, t.operands = append(t.members, n), append(t.operands, x)
			}
		}
	}
	j.add(t)
}

// ScaleWeights computes (x / s) W, with one number of s for each feature, as x (W / s), if only products read x / s.
// That saves a value of the size of x, which is much larger than W for large bags. Results differ by rounding errors.
func ScaleWeights(g *Graph) (*Graph, error) {
	other := map[*Node]bool{} // read by something else than a product with it as the left factor
	for _, n := range g.Nodes {
		for i, x := range n.In {
			other[x] = other[x] || n.Op != OpMatMul || i > 0
		}
	}
	for _, o := range g.Outputs {
		other[o.Node] = true
	}
	scaled := func(b *Builder, n *Node, in []*Node) *Node {
		if n.Op != OpMatMul || in[0].Op != OpDiv || other[n.In[0]] || len(in[1].Shape) != 2 {
			return nil
		}
		x, s := in[0].In[0], in[0].In[1]
		if d := in[1].Shape[0]; !x.Shape.Equal(Shape{N, d}) || !s.Shape.Equal(Shape{1, d}) {
			return nil
		}
		return b.MatMul(x, b.Div(in[1], b.Reshape(s, Shape{in[1].Shape[0], 1})))
	}
	return runAll(append([]Pass{{"scaled weights", rule(scaled).run}}, cleaning()...), g)
}
