// Any graph that the builder accepts can be evaluated, differentiated and optimised.

package graph_test

import (
	"math"
	"testing"

	"github.com/miplc/miplc/graph"
)

// tape returns the bytes of a fuzz input as numbers, then zeros.
type tape []byte

func (t *tape) next() int {
	if len(*t) == 0 {
		return 0
	}
	v := (*t)[0]
	*t = (*t)[1:]
	return int(v)
}

// number returns a number that is usually small. Some are so large that sums and products overflow.
func (t *tape) number() int {
	extremes := []int{math.MaxInt, math.MinInt, -1, -2, -3, 1 << 40, 1 << 32, 0}
	v := t.next()
	if v >= 256-len(extremes) {
		return extremes[255-v]
	}
	return v % 8
}

func (t *tape) numbers() []int {
	out := make([]int, t.next()%5)
	for i := range out {
		out[i] = t.number()
	}
	return out
}

func (t *tape) shape() graph.Shape {
	s := graph.Shape{}
	for _, d := range t.numbers() {
		s = append(s, graph.Dim(d))
	}
	return s
}

func (t *tape) attrs() graph.Attrs {
	pair := func() [2]int { return [2]int{t.number(), t.number()} }
	values := []float64{0, 1, -2.5, math.NaN(), math.Inf(1), math.Inf(-1), 1e300}
	value := func() float64 { return values[t.next()%len(values)] }
	a := graph.Attrs{
		Axis: t.number(), Axes: t.numbers(), Keep: t.next()%2 == 0, Perm: t.numbers(), Shape: t.shape(),
		Start: t.number(), End: t.number(), Lo: value(), Hi: value(), Value: value(),
		Kernel: pair(), Stride: pair(), Pad: pair(),
	}
	for range t.next() % 9 {
		a.Data = append(a.Data, value())
	}
	return a
}

// FuzzApply applies ops with arbitrary arguments to arbitrary nodes. If Apply accepts them, the
// graph passes the verifier and can be printed, and no pass and no gradient panics.
func FuzzApply(f *testing.F) {
	for _, seed := range []string{"", "\x11\x00\x00\x00", "0123456789abcdefghij",
		"\x1a\x01\x02\xff\xfe\xfd\xfc\xfb\xfa\x00\x01\x02\x03"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		bytes := tape(data)
		m := graph.NewBuilder("fuzz")
		nodes := []*graph.Node{
			m.Input("x", graph.Float, shape{n, 3}), m.Input("bag_of", graph.Int, shape{n}),
			m.Input("y", graph.Float, shape{b, 3}), m.Param("w", shape{3, 2}),
			m.Input("image", graph.Float, shape{n, 1, 5, 5}), m.Param("kernel", shape{2, 1, 3, 3}), nil,
		}
		ops := graph.AllOps()
		for len(bytes) > 0 && len(nodes) < 40 {
			op := graph.Op(bytes.next() % (len(ops) + 2))
			in := make([]*graph.Node, bytes.next()%4)
			for i := range in {
				in[i] = nodes[bytes.next()%len(nodes)]
			}
			if op.IsSegment() && len(in) > 0 {
				in[len(in)-1] = nodes[1]
			}
			if x, err := m.Apply(op, bytes.attrs(), in...); err == nil {
				nodes = append(nodes, x)
			}
		}
		last := nodes[len(nodes)-1]
		if last == nil || last.Type != graph.Float {
			last = nodes[0]
		}
		m.Output("last", last)
		axes := make([]int, len(last.Shape))
		for i := range axes {
			axes[i] = i
		}
		m.Output("loss", m.Sum(last, false, axes...))
		g, err := m.Graph()
		if err != nil {
			t.Fatal(err)
		}
		exercise(t, g)
	})
}

func exercise(t *testing.T, g *graph.Graph) {
	if err := graph.Verify(g); err != nil {
		t.Fatalf("%v\n%s", err, g.Text())
	}
	_ = g.DOT()
	steps := append(passes(), graph.Pass{Name: "single bag", Run: graph.SingleBag}, graph.Pass{Name: "gradient",
		Run: func(g *graph.Graph) (*graph.Graph, error) { return graph.Gradient(g, "loss", []string{"x", "w"}) }})
	for _, p := range steps {
		after, err := p.Run(g)
		if err != nil {
			if p.Name == "gradient" {
				continue // not every op has one
			}
			t.Fatalf("%s: %v\n%s", p.Name, err, g.Text())
		}
		if err := graph.Verify(after); err != nil {
			t.Fatalf("%s: %v\n%s", p.Name, err, after.Text())
		}
		evalSmall(after)
	}
	evalSmall(g)
}

// evalSmall evaluates a graph unless fuzzing made its values too large for a test.
func evalSmall(g *graph.Graph) {
	env := graph.Env{N: 2, B: 1, Values: map[string]*graph.Tensor{"bag_of": graph.NewInts(0, -1)}}
	total := 0
	for _, x := range g.Nodes {
		size := 1
		for _, d := range x.Shape.Concrete(2, 1) {
			size *= d
			if size > 1<<20 {
				return
			}
		}
		total += size
		if x.Op >= graph.OpConv2D && total > 1<<10 || total > 1<<20 {
			return
		}
		if x.Type == graph.Float && (x.Op == graph.OpInput || x.Op == graph.OpParam) {
			env.Values[x.Name] = graph.NewTensor(x.Shape.Concrete(2, 1))
		}
	}
	_, _ = graph.Eval(g, env) // an error is fine, a panic is not
}
