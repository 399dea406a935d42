// Cases of each op.

package modeltest

import "github.com/miplc/miplc/graph"

const (
	n = graph.N
	b = graph.B
)

type shape = graph.Shape

// elementwise has the ops with one input, near their kinks and at large values.
func elementwise() []recipe {
	list := []recipe{
		{graph.OpInput, "", nil, func(m *maker) *graph.Node { return m.in("x", shape{n, 3}) }},
		{graph.OpParam, "", nil, func(m *maker) *graph.Node { return m.param("w", shape{2, 3}) }},
		{graph.OpConst, "", nil, func(m *maker) *graph.Node { return m.Const(shape{2, 2}, 1, -2, 0.5, 1e-3) }},
		{graph.OpConst, "scalar", nil, func(m *maker) *graph.Node { return m.Scalar(0.25) }},
		{graph.OpFill, "", nil, func(m *maker) *graph.Node { return m.Fill(0.75, shape{n, 2}) }},
		{graph.OpFill, "bags", nil, func(m *maker) *graph.Node { return m.Fill(-1, shape{b, 1}) }},
		{graph.OpFill, "static", nil, func(m *maker) *graph.Node { return m.Fill(2, shape{3}) }},
		{graph.OpLog, "", nil, func(m *maker) *graph.Node { return m.Log(m.positive("x", shape{n, 3})) }},
		{graph.OpSqrt, "", nil, func(m *maker) *graph.Node { return m.Sqrt(m.positive("x", shape{n, 3})) }},
		{graph.OpClamp, "", nil, func(m *maker) *graph.Node { return m.Clamp(m.in("x", shape{n, 3}), -0.7, 1.1) }},
		{graph.OpSigmoid, "saturated", nil, func(m *maker) *graph.Node {
			return m.Sigmoid(m.in("x", shape{n, 1}, -60, 60, -20, 20))
		}},
		{graph.OpSoftplus, "saturated", nil, func(m *maker) *graph.Node {
			return m.Softplus(m.in("x", shape{n, 1}, -60, 60, -20, 20))
		}},
		{graph.OpRelu, "zero", nil, func(m *maker) *graph.Node {
			m.kink = true
			return m.Relu(m.in("x", shape{n}, 0, -3, 3))
		}},
		{graph.OpSign, "zero", nil, func(m *maker) *graph.Node { return m.Sign(m.in("x", shape{n}, 0, -3, 3)) }},
	}
	for _, op := range graph.AllOps() {
		if !op.Elementwise() || op.Arity() != 1 || op == graph.OpLog || op == graph.OpSqrt || op == graph.OpClamp {
			continue // they have their own rows
		}
		for _, s := range []shape{{n, 3}, {}, {b, 1, 2}} {
			list = append(list, recipe{op, s.String(), nil, func(m *maker) *graph.Node {
				return must(m.Builder, op, graph.Attrs{}, m.in("x", s))
			}})
		}
	}
	return list
}

// must applies an op.
func must(b *graph.Builder, op graph.Op, a graph.Attrs, in ...*graph.Node) *graph.Node {
	y, err := b.Apply(op, a, in...)
	if err != nil {
		panic("graphtest: " + err.Error())
	}
	return y
}

// broadcasting has the ops with two inputs of equal shapes, and with either or both inputs
// broadcast.
func broadcasting() []recipe {
	var list []recipe
	for _, op := range graph.AllOps() {
		if !op.Elementwise() || op.Arity() != 2 {
			continue
		}
		for _, s := range [][2]shape{
			{{n, 3}, {n, 3}},
			{{n, 3}, {3}},
			{{1, 3}, {n, 3}},
			{{n, 1}, {n, 3}},
			{{n, 1}, {1, 3}},
			{{b, 2}, {}},
			{{}, {b, 2}},
			{{2, 1, 3}, {4, 1}},
			{{n, 2, 3}, {2, 1}},
			{{}, {}},
		} {
			list = append(list, recipe{op, s[0].String() + s[1].String(), nil, func(m *maker) *graph.Node {
				return must(m.Builder, op, graph.Attrs{}, m.in("x", s[0]), m.positive("y", s[1]))
			}})
		}
	}
	return append(list, recipe{graph.OpGreater, "equal", nil, func(m *maker) *graph.Node {
		return m.Greater(m.in("x", shape{3}, 1, 2, 3), m.in("y", shape{3}, 1, 3, 2))
	}}, recipe{graph.OpGreaterOrEqual, "equal", nil, func(m *maker) *graph.Node {
		return m.GreaterOrEqual(m.in("x", shape{3}, 1, 2, 3), m.in("y", shape{3}, 1, 3, 2))
	}}, recipe{graph.OpMul, "square", nil, func(m *maker) *graph.Node {
		x := m.in("x", shape{n, 2})
		return m.Mul(x, x)
	}})
}

func matrices() []recipe {
	x := func(m *maker) *graph.Node { return m.in("x", shape{n, 3}) }
	return []recipe{
		{graph.OpMatMul, "", nil, func(m *maker) *graph.Node { return m.MatMul(x(m), m.param("w", shape{3, 4})) }},
		{graph.OpMatMul, "column", nil, func(m *maker) *graph.Node { return m.MatMul(x(m), m.param("w", shape{3, 1})) }},
		{graph.OpMatMul, "weights by instances", nil, func(m *maker) *graph.Node {
			return m.MatMul(m.in("a", shape{1, n}), x(m))
		}},
		{graph.OpMatMul, "static", nil, func(m *maker) *graph.Node {
			return m.MatMul(m.param("v", shape{2, 3}), m.param("w", shape{3, 2}))
		}},
		{graph.OpTranspose, "", nil, func(m *maker) *graph.Node { return m.Transpose(x(m), 1, 0) }},
		{graph.OpTranspose, "three axes", nil, func(m *maker) *graph.Node {
			return m.Transpose(m.in("x", shape{n, 2, 3}), 2, 0, 1)
		}},
		{graph.OpReshape, "flatten", nil, func(m *maker) *graph.Node {
			return m.Reshape(m.in("x", shape{n, 2, 3}), shape{n, 6})
		}},
		{graph.OpReshape, "scalar", nil, func(m *maker) *graph.Node { return m.Reshape(m.in("x", shape{}), shape{1, 1}) }},
		{graph.OpReshape, "column", nil, func(m *maker) *graph.Node { return m.Reshape(m.in("x", shape{n, 1}), shape{n}) }},
		{graph.OpReshape, "static", nil, func(m *maker) *graph.Node {
			return m.Reshape(m.param("w", shape{2, 6}), shape{3, 4})
		}},
		{graph.OpExpand, "rows", nil, func(m *maker) *graph.Node { return m.Expand(m.in("x", shape{1, 3}), shape{n, 3}) }},
		{graph.OpExpand, "axes", nil, func(m *maker) *graph.Node { return m.Expand(m.in("x", shape{2, 1}), shape{b, 2, 3}) }},
		{graph.OpExpand, "scalar", nil, func(m *maker) *graph.Node { return m.Expand(m.in("x", shape{}), shape{n, 2}) }},
		{graph.OpConcat, "columns", nil, func(m *maker) *graph.Node {
			return m.Concat(1, x(m), m.in("y", shape{n, 1}), m.in("z", shape{n, 2}))
		}},
		{graph.OpConcat, "rows", nil, func(m *maker) *graph.Node {
			return m.Concat(0, m.param("v", shape{2, 2}), m.param("w", shape{1, 2}))
		}},
		{graph.OpConcat, "middle", nil, func(m *maker) *graph.Node {
			return m.Concat(1, m.in("x", shape{n, 2, 3}), m.in("y", shape{n, 1, 3}))
		}},
		{graph.OpSlice, "columns", nil, func(m *maker) *graph.Node { return m.Slice(x(m), 1, 1, 3) }},
		{graph.OpSlice, "rows", nil, func(m *maker) *graph.Node { return m.Slice(m.param("w", shape{4, 2}), 0, 1, 2) }},
		{graph.OpPad, "columns", nil, func(m *maker) *graph.Node { return m.Pad(x(m), 1, 1, 2) }},
		{graph.OpPad, "rows", nil, func(m *maker) *graph.Node { return m.Pad(m.param("w", shape{2, 2}), 0, 0, 1) }},
		{graph.OpSoftmax, "", nil, func(m *maker) *graph.Node { return m.Softmax(x(m)) }},
		{graph.OpSoftmax, "saturated", nil, func(m *maker) *graph.Node {
			return m.Softmax(m.in("x", shape{b, 3}, 60, -60, 0, 500, 499, 0))
		}},
		{graph.OpSoftmax, "instances", nil, func(m *maker) *graph.Node { return m.Softmax(m.in("x", shape{1, n})) }},
		{graph.OpLogSoftmax, "", nil, func(m *maker) *graph.Node { return m.LogSoftmax(x(m)) }},
		{graph.OpLogSoftmax, "saturated", nil, func(m *maker) *graph.Node {
			return m.LogSoftmax(m.in("x", shape{b, 3}, 60, -60, 0, 500, 499, 0))
		}},
		{graph.OpSoftmax, "with its logarithm", nil, func(m *maker) *graph.Node {
			x := x(m)
			return m.Mul(m.Softmax(x), m.LogSoftmax(x))
		}},
	}
}

func reductions() []recipe {
	x := func(m *maker) *graph.Node { return m.in("x", shape{n, 2, 3}) }
	ties := func(m *maker) *graph.Node { return m.in("x", shape{2, 3}, 4, 4, 1, 0, 2, 2) }
	list := []recipe{
		{graph.OpMax, "ties", nil, func(m *maker) *graph.Node { m.kink = true; return m.Max(ties(m), false, 1) }},
		{graph.OpMaxMask, "", nil, func(m *maker) *graph.Node { return m.MaxMask(x(m), 1) }},
		{graph.OpMaxMask, "two axes", nil, func(m *maker) *graph.Node { return m.MaxMask(x(m), 0, 2) }},
		{graph.OpMaxMask, "ties", nil, func(m *maker) *graph.Node { return m.MaxMask(ties(m), 1) }},
		{graph.OpMaxMask, "ties in two axes", nil, func(m *maker) *graph.Node {
			return m.MaxMask(m.in("x", shape{2, 2, 2}, 1, 4, 4, 3, 4, 2, 0, 4), 0, 2)
		}},
		{graph.OpMaxMask, "ties in columns", nil, func(m *maker) *graph.Node {
			return m.MaxMask(m.in("x", shape{2, 2}, 1, 3, 1, 3), 0)
		}},
	}
	for _, op := range []graph.Op{graph.OpSum, graph.OpMax} {
		for _, v := range []struct {
			name string
			axes []int
			keep bool
		}{
			{"instances", []int{0}, false}, {"instances kept", []int{0}, true}, {"last", []int{2}, true},
			{"middle", []int{1}, false}, {"two axes", []int{0, 2}, false}, {"all", []int{0, 1, 2}, false},
			{"all kept", []int{0, 1, 2}, true},
		} {
			list = append(list, recipe{op, v.name, nil, func(m *maker) *graph.Node {
				return must(m.Builder, op, graph.Attrs{Axes: v.axes, Keep: v.keep}, x(m))
			}})
		}
	}
	return append(list, recipe{graph.OpSum, "bags", nil, func(m *maker) *graph.Node {
		return m.Sum(m.in("x", shape{b, 3}), false, 0, 1)
	}})
}

// segments has every segment op on ragged batches: one bag, mixed bags, padding between and after
// bags.
func segments() []recipe {
	batches := []struct {
		name  string
		bagOf []int
	}{
		{"", nil},
		{"one bag", []int{0, 0, 0}},
		{"one instance", []int{0}},
		{"mixed", []int{1, 0, 2, 0, 1, 1}},
		{"padded", []int{-1, 0, 0, 1, -1, 2, 2, -1}},
	}
	var list []recipe
	for _, batch := range batches {
		for _, op := range graph.AllOps() {
			if !op.IsSegment() || op.Arity() != 2 {
				continue
			}
			lead := n
			if op == graph.OpSegmentGather {
				lead = b
			}
			for _, s := range []shape{{lead, 1}, {lead, 3}, {lead}, {lead, 2, 2}} {
				variant := s.String()
				if batch.name != "" {
					variant += " " + batch.name
				}
				list = append(list, recipe{op, variant, batch.bagOf, func(m *maker) *graph.Node {
					return must(m.Builder, op, graph.Attrs{}, m.in("x", s), m.bagOf)
				}})
			}
		}
	}
	for _, batch := range batches {
		list = append(list, recipe{graph.OpSegmentAttention, batch.name, batch.bagOf, func(m *maker) *graph.Node {
			return must(m.Builder, graph.OpSegmentAttention, graph.Attrs{}, m.in("q", shape{n, 3}), m.in("k", shape{n, 3}),
				m.in("v", shape{n, 2}), m.bagOf)
		}}, recipe{graph.OpSegmentAttentionGrad, batch.name, batch.bagOf, func(m *maker) *graph.Node {
			return must(m.Builder, graph.OpSegmentAttentionGrad, graph.Attrs{},
				m.in("q", shape{n, 3}), m.in("k", shape{n, 3}), m.in("v", shape{n, 2}), m.in("dy", shape{n, 2}), m.bagOf)
		}})
	}
	return append(list, segmentCases()...)
}

// segmentCases are uses of segment ops that need their own values or bags.
func segmentCases() []recipe {
	empty := []int{0, 0, 2, 2, 2} // bag 1 has no instances
	return []recipe{
		{graph.OpAttention, "", []int{0, 0, 0, 0}, func(m *maker) *graph.Node {
			return must(m.Builder, graph.OpAttention, graph.Attrs{}, m.in("q", shape{n, 3}), m.in("k", shape{n, 3}),
				m.in("v", shape{n, 2}))
		}},
		{graph.OpAttentionGrad, "", []int{0, 0, 0, 0}, func(m *maker) *graph.Node {
			return must(m.Builder, graph.OpAttentionGrad, graph.Attrs{}, m.in("q", shape{n, 3}), m.in("k", shape{n, 3}),
				m.in("v", shape{n, 2}), m.in("dy", shape{n, 2}))
		}},
		{graph.OpSegmentMax, "empty bag", empty, func(m *maker) *graph.Node {
			m.kink = true // the kink of the clamp, which makes the result finite
			return m.Clamp(m.SegmentMax(m.in("x", shape{n, 2}), m.bagOf), -50, 50)
		}},
		{graph.OpSegmentSum, "empty bag", empty, func(m *maker) *graph.Node {
			return m.SegmentSum(m.in("x", shape{n, 2}), m.bagOf)
		}},
		{graph.OpSegmentMaxMask, "ties", []int{0, 0, 1, 1}, func(m *maker) *graph.Node {
			return m.SegmentMaxMask(m.in("x", shape{n, 2}, 1, 2, 1, 3, 5, 5, 5, 4), m.bagOf)
		}},
		{graph.OpSegmentSoftmax, "saturated", []int{0, 0, 1, 1}, func(m *maker) *graph.Node {
			return m.SegmentSoftmax(m.in("x", shape{n, 1}, -60, 60, -500, -500.5), m.bagOf)
		}},
		{graph.OpSegmentAttention, "saturated", nil, func(m *maker) *graph.Node {
			q := m.Mul(m.in("q", shape{n, 1}), m.Scalar(50))
			return must(m.Builder, graph.OpSegmentAttention, graph.Attrs{}, q, m.in("k", shape{n, 1}), m.in("v", shape{n, 1}),
				m.bagOf)
		}},
		{graph.OpSegmentAttention, "of itself", nil, func(m *maker) *graph.Node {
			x := m.in("x", shape{n, 2})
			return must(m.Builder, graph.OpSegmentAttention, graph.Attrs{}, x, x, x, m.bagOf)
		}},
		{graph.OpSegmentSum, "attention pooling", nil, func(m *maker) *graph.Node {
			return m.SegmentSum(m.Mul(m.SegmentSoftmax(m.in("s", shape{n, 1}), m.bagOf), m.in("x", shape{n, 3})), m.bagOf)
		}},
		{graph.OpSegmentSum, "mean", nil, func(m *maker) *graph.Node {
			return m.Div(m.SegmentSum(m.in("x", shape{n, 3}), m.bagOf), m.SegmentSum(m.Fill(1, shape{n, 1}), m.bagOf))
		}},
		{graph.OpSegmentGather, "difference from the mean", nil, func(m *maker) *graph.Node {
			x := m.in("x", shape{n, 3})
			mean := m.Div(m.SegmentSum(x, m.bagOf), m.SegmentSum(m.Fill(1, shape{n, 3}), m.bagOf))
			return m.Sub(x, m.SegmentGather(mean, m.bagOf))
		}},
	}
}

func images() []recipe {
	type geometry struct {
		name        string
		x, w, y     shape
		stride, pad [2]int
	}
	one := [2]int{1, 1}
	var list []recipe
	for _, g := range []geometry{
		{"", shape{n, 2, 5, 5}, shape{3, 2, 3, 3}, shape{n, 3, 3, 3}, one, [2]int{}},
		{"padded", shape{n, 1, 4, 5}, shape{2, 1, 3, 3}, shape{n, 2, 4, 5}, one, one},
		{"strided", shape{n, 1, 6, 6}, shape{2, 1, 2, 3}, shape{n, 2, 3, 2}, [2]int{2, 2}, [2]int{}},
		{"all", shape{n, 2, 6, 5}, shape{2, 2, 3, 2}, shape{n, 2, 3, 3}, [2]int{2, 3}, [2]int{1, 2}},
		{"padded widely", shape{n, 1, 2, 1}, shape{2, 1, 5, 7}, shape{n, 2, 2, 1}, one, [2]int{2, 3}},
		{"point", shape{n, 2, 3, 3}, shape{4, 2, 1, 1}, shape{n, 4, 3, 3}, one, [2]int{}},
	} {
		list = append(list,
			recipe{graph.OpConv2D, g.name, nil, func(m *maker) *graph.Node {
				return m.Conv2D(m.in("x", g.x), m.param("w", g.w), g.stride, g.pad)
			}},
			recipe{graph.OpConv2DGradInput, g.name, nil, func(m *maker) *graph.Node {
				return m.Conv2DGradInput(m.in("dy", g.y), m.param("w", g.w), g.stride, g.pad, g.x)
			}},
			recipe{graph.OpConv2DGradWeight, g.name, nil, func(m *maker) *graph.Node {
				return m.Conv2DGradWeight(m.in("x", g.x), m.in("dy", g.y), g.stride, g.pad, g.w)
			}})
	}
	two := [2]int{2, 2}
	for _, g := range []struct {
		name           string
		x, y           shape
		kernel, stride [2]int
	}{
		{"", shape{n, 2, 4, 6}, shape{n, 2, 2, 3}, two, two},
		{"left over", shape{n, 1, 5, 7}, shape{n, 1, 2, 3}, two, two},
		{"overlapping", shape{n, 1, 4, 5}, shape{n, 1, 2, 2}, [2]int{3, 3}, [2]int{1, 2}},
	} {
		list = append(list,
			recipe{graph.OpMaxPool2D, g.name, nil, func(m *maker) *graph.Node {
				return m.MaxPool2D(m.in("x", g.x), g.kernel, g.stride)
			}},
			recipe{graph.OpMaxPool2DGrad, g.name, nil, func(m *maker) *graph.Node {
				return m.MaxPool2DGrad(m.in("x", g.x), m.in("dy", g.y), g.kernel, g.stride)
			}})
	}
	return append(list, recipe{graph.OpMaxPool2D, "ties", []int{0}, func(m *maker) *graph.Node {
		m.kink = true
		return m.MaxPool2D(m.in("x", shape{n, 1, 4, 4}, make([]float64, 16)...), two, two)
	}}, recipe{graph.OpMaxPool2DGrad, "ties", []int{0}, func(m *maker) *graph.Node {
		blank := m.in("x", shape{n, 1, 4, 4}, make([]float64, 16)...)
		return m.MaxPool2DGrad(blank, m.in("dy", shape{n, 1, 2, 2}), two, two)
	}})
}
