// The pass Columns, which stores values with one row per instance as columns.

package graph

import "slices"

// Columns stores values with one row per instance as columns, [f, N] instead of [N, f]. For large bags
// that is faster: a matrix product streams a factor with many rows from memory several times, and one with
// many columns once. Inputs keep their rows, and so do values of ops without a rule. If an op needs a
// value in the other form, the value is transposed first; see ColumnsPay.
//
// Results can differ by rounding errors, because sums are added in another order.
func Columns(g *Graph) (*Graph, error) {
	c := &columnForm{b: NewBuilder(g.Name), rows: make([]*Node, len(g.Nodes)), columns: make([]*Node, len(g.Nodes))}
	live := g.Live()
	for _, n := range g.Nodes {
		if live[n.ID] || n.Op.IsLeaf() {
			c.b.like(n)
			c.place(n)
		}
	}
	for _, o := range g.Outputs {
		c.b.Output(o.Name, c.rowsOf(o.Node))
	}
	return c.b.Optimized()
}

// ColumnsPay reports whether a graph that Columns returned is faster than the original on large bags. Columns save
// about a sixth of the time of the matrix products. They cost the transpositions whose results are read by
// ops other than products. Transposing a number takes as long as up to 100 multiplications. onnxruntime reads
// factors of products in either order, so their transpositions take no time.
func ColumnsPay(g *Graph) bool {
	const worth = 100 * 6
	products, transposed := 0.0, 0.0
	read := map[*Node]bool{} // by an op other than a product, or an output
	for _, n := range g.Nodes {
		for _, x := range n.In {
			read[x] = read[x] || n.Op != OpMatMul
		}
	}
	for _, o := range g.Outputs {
		read[o.Node] = true
	}
	for _, n := range g.Nodes {
		if !slices.Contains(n.Shape, N) && (len(n.In) == 0 || !slices.Contains(n.In[0].Shape, N)) {
			continue
		}
		switch {
		case n.Op == OpMatMul:
			products += n.In[0].Shape.Elements(1, 1) * float64(n.In[1].Shape.Concrete(1, 1)[1])
		case n.Op == OpTranspose && read[n]:
			transposed += n.Shape.Elements(1, 1)
		}
	}
	return products > worth*transposed
}

// columnForm has the values of a graph in the builder, by the ID of their node. Values with the shape
// [N, f] are in rows, in columns, or in both.
type columnForm struct {
	b             *Builder
	rows, columns []*Node
}

// instanceMatrix reports whether a value is a matrix [N, f] with f != N.
func instanceMatrix(n *Node) bool { return len(n.Shape) == 2 && n.Shape[0] == N && n.Shape[1] != N }

// rowsOf returns a value in the form of the original graph.
func (c *columnForm) rowsOf(n *Node) *Node {
	if c.rows[n.ID] == nil {
		c.rows[n.ID] = c.transposed(c.columns[n.ID])
	}
	return c.rows[n.ID]
}

// columnsOf returns a value [N, f] as [f, N].
func (c *columnForm) columnsOf(n *Node) *Node {
	if c.columns[n.ID] == nil {
		c.columns[n.ID] = c.transposed(c.rows[n.ID])
	}
	return c.columns[n.ID]
}

// transposed returns a transposed matrix. A vector only gets another shape.
func (c *columnForm) transposed(x *Node) *Node {
	if x.Shape[0] == 1 || x.Shape[1] == 1 {
		return c.b.Reshape(x, Shape{x.Shape[1], x.Shape[0]})
	}
	return c.b.Transpose(x, 1, 0)
}

// place adds a node to the builder.
func (c *columnForm) place(n *Node) {
	if instanceMatrix(n) {
		c.columns[n.ID] = c.inColumns(n)
	} else {
		c.rows[n.ID] = c.reduced(n)
	}
	if c.columns[n.ID] == nil && c.rows[n.ID] == nil {
		in := make([]*Node, len(n.In))
		for i, x := range n.In {
			in[i] = c.rowsOf(x)
		}
		c.rows[n.ID] = c.b.copy(n, in)
	}
	for _, made := range []*Node{c.rows[n.ID], c.columns[n.ID]} {
		if made != nil && !n.Op.IsLeaf() {
			made.Name = n.Name
		}
	}
}

// inColumns returns the value [N, f] of a node as [f, N], or nil if there is no rule for its op.
func (c *columnForm) inColumns(n *Node) *Node {
	a := n.Attrs
	switch {
	case n.Op.Elementwise():
		in := make([]*Node, len(n.In))
		for i, x := range n.In {
			if in[i] = c.operand(x); in[i] == nil {
				return nil
			}
		}
		return c.b.op(n.Op, a, in...)
	case n.Op == OpMatMul && instanceMatrix(n.In[0]):
		return c.b.MatMul(c.transposed(c.rowsOf(n.In[1])), c.columnsOf(n.In[0]))
	case n.Op == OpConcat && a.Axis == 1:
		var parts []*Node
		for _, x := range n.In {
			parts = append(parts, c.columnsOf(x))
		}
		return c.b.Concat(0, parts...)
	case n.Op == OpSlice && a.Axis == 1:
		return c.b.Slice(c.columnsOf(n.In[0]), 0, a.Start, a.End)
	case n.Op == OpPad && a.Axis == 1:
		return c.b.Pad(c.columnsOf(n.In[0]), 0, a.Start, a.End)
	case n.Op == OpTranspose && len(n.In[0].Shape) == 2:
		return c.rowsOf(n.In[0])
	case n.Op == OpReshape && n.Shape[1] == 1:
		return c.b.Reshape(c.rowsOf(n.In[0]), Shape{1, N})
	case n.Op == OpFill:
		return c.b.Fill(a.Value, Shape{n.Shape[1], N})
	case n.Op == OpExpand:
		if x := c.operand(n.In[0]); x != nil {
			return c.b.Expand(x, Shape{n.Shape[1], N})
		}
	case (n.Op == OpSum || n.Op == OpMax || n.Op == OpMaxMask) && instanceMatrix(n.In[0]) && len(a.Axes) == 1:
		a.Axes = []int{1 - a.Axes[0]}
		return c.b.op(n.Op, a, c.columnsOf(n.In[0]))
	}
	return nil
}

// operand returns an operand of an element-wise op whose result is in columns, or nil if it cannot
// be in columns.
func (c *columnForm) operand(x *Node) *Node {
	switch {
	case instanceMatrix(x):
		return c.columnsOf(x)
	case len(x.Shape) == 0:
		return c.rowsOf(x)
	case len(x.Shape) == 1 && x.Shape[0] != N:
		return c.b.Reshape(c.rowsOf(x), Shape{x.Shape[0], 1})
	case len(x.Shape) == 2 && x.Shape[0] == 1 && x.Shape[1] != N:
		return c.b.Reshape(c.rowsOf(x), Shape{x.Shape[1], 1})
	}
	return nil
}

// reduced returns the value of a node that has no rows of instances, but reads some, or nil if there is
// no rule for its op.
func (c *columnForm) reduced(n *Node) *Node {
	if len(n.In) == 0 || !slices.ContainsFunc(n.In, instanceMatrix) {
		return nil
	}
	a, x := n.Attrs, n.In[0]
	switch {
	case n.Op == OpTranspose:
		return c.columnsOf(x)
	case n.Op == OpReshape && x.Shape[1] == 1:
		return c.b.Reshape(c.columnsOf(x), a.Shape)
	case n.Op == OpSum || n.Op == OpMax:
		reduced := c.b.op(n.Op, Attrs{Axes: swapped(a.Axes), Keep: a.Keep}, c.columnsOf(x))
		if a.Keep {
			reduced = c.b.Reshape(reduced, n.Shape)
		}
		return reduced
	case n.Op == OpMatMul && x.Op == OpTranspose && c.columns[n.In[1].ID] != nil && c.rows[x.In[0].ID] != nil:
		// X' Y for rows X and columns Y is the transpose of a product that reads both as they are.
		return c.transposed(c.b.MatMul(c.columnsOf(n.In[1]), c.rows[x.In[0].ID]))
	}
	return nil
}

// swapped returns the axes of a matrix as axes of its transpose, in order.
func swapped(axes []int) []int {
	var list []int
	for _, a := range axes {
		list = append(list, 1-a)
	}
	slices.Sort(list)
	return list
}
