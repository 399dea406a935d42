// Values of the interpreter, by hand.

package graph

import (
	"math"
	"strings"
	"testing"
)

// The expected numbers were computed by hand.
func TestEvalOps(t *testing.T) {
	x23 := NewTensor([]int{2, 3}, 1, -2, 3, 4, 5, -6)
	img := NewTensor([]int{1, 1, 3, 3}, 1, 2, 3, 4, 5, 6, 7, 8, 9)
	ker := NewTensor([]int{1, 1, 2, 2}, 1, 0, 0, -1)
	rows := NewTensor([]int{4, 2}, 1, 9, 5, 2, 5, 3, 7, 7)
	one, inf := [2]int{1, 1}, math.Inf(1)
	cases := []struct {
		name  string
		x     *Tensor
		y     *Tensor
		build func(b *Builder, x, y, bag *Node) *Node
		want  []float64
	}{
		{"neg", x23, nil, func(b *Builder, x, _, _ *Node) *Node { return b.Neg(x) }, []float64{-1, 2, -3, -4, -5, 6}},
		{"sign", x23, nil, func(b *Builder, x, _, _ *Node) *Node { return b.Sign(x) }, []float64{1, -1, 1, 1, 1, -1}},
		{"abs", x23, nil, func(b *Builder, x, _, _ *Node) *Node { return b.Abs(x) }, []float64{1, 2, 3, 4, 5, 6}},
		{"relu", x23, nil, func(b *Builder, x, _, _ *Node) *Node { return b.Relu(x) }, []float64{1, 0, 3, 4, 5, 0}},
		{"clamp", x23, nil, func(b *Builder, x, _, _ *Node) *Node { return b.Clamp(x, -1, 3) }, []float64{1, -1, 3, 3, 3,
			-1}},
		{"broadcast row", x23, NewTensor([]int{3}, 10, 20, 30), func(b *Builder, x, y, _ *Node) *Node { return b.Add(x, y) },
			[]float64{11, 18, 33, 14, 25, 24}},
		{"broadcast column", x23, NewTensor([]int{2, 1}, 10, 20), func(b *Builder, x, y, _ *Node) *Node {
			return b.Sub(y, x)
		},
			[]float64{9, 12, 7, 16, 15, 26}},
		{"outer", NewTensor([]int{3}, 1, 2, 3), NewTensor([]int{2, 1}, 2, 4),
			func(b *Builder, x, y, _ *Node) *Node { return b.Div(x, y) }, []float64{.5, 1, 1.5, .25, .5, .75}},
		{"greater", x23, NewTensor([]int{}, 3), func(b *Builder, x, y, _ *Node) *Node { return b.Greater(x, y) },
			[]float64{0, 0, 0, 1, 1, 0}},
		{"greater or equal", NewTensor([]int{4}, 2, 3, 4, math.NaN()), NewTensor([]int{}, 3),
			func(b *Builder, x, y, _ *Node) *Node { return b.GreaterOrEqual(x, y) }, []float64{0, 1, 1, 0}},
		{"matmul", x23, NewTensor([]int{3, 2}, 1, 2, 3, 4, 5, 6), func(b *Builder, x, y, _ *Node) *Node {
			return b.MatMul(x, y)
		},
			[]float64{10, 12, -11, -8}},
		{"transpose", x23, nil, func(b *Builder, x, _, _ *Node) *Node { return b.Transpose(x, 1, 0) }, []float64{1, 4, -2, 5,
			3, -6}},
		{"sum 0", x23, nil, func(b *Builder, x, _, _ *Node) *Node { return b.Sum(x, false, 0) }, []float64{5, 3, -3}},
		{"sum all", x23, nil, func(b *Builder, x, _, _ *Node) *Node { return b.Sum(x, true, 0, 1) }, []float64{5}},
		{"max 1", x23, nil, func(b *Builder, x, _, _ *Node) *Node { return b.Max(x, false, 1) }, []float64{3, 5}},
		{"max mask", NewTensor([]int{2, 3}, 4, 4, 1, 0, 2, 2), nil, func(b *Builder, x, _, _ *Node) *Node {
			return b.MaxMask(x, 1)
		},
			[]float64{1, 0, 0, 0, 1, 0}},
		{"concat", x23, NewTensor([]int{2, 1}, 8, 9), func(b *Builder, x, y, _ *Node) *Node { return b.Concat(1, x, y) },
			[]float64{1, -2, 3, 8, 4, 5, -6, 9}},
		{"slice", x23, nil, func(b *Builder, x, _, _ *Node) *Node { return b.Slice(x, 1, 1, 3) }, []float64{-2, 3, 5, -6}},
		{"pad", NewTensor([]int{2, 1}, 1, 2), nil, func(b *Builder, x, _, _ *Node) *Node { return b.Pad(x, 1, 1, 2) },
			[]float64{0, 1, 0, 0, 0, 2, 0, 0}},
		{"softmax", NewTensor([]int{2, 2}, 1000, 1000, -1000, 1000), nil, func(b *Builder, x, _, _ *Node) *Node {
			return b.Softmax(x)
		},
			[]float64{.5, .5, 0, 1}},
		{"log softmax", NewTensor([]int{1, 2}, -1000, 1000), nil, func(b *Builder, x, _, _ *Node) *Node {
			return b.LogSoftmax(x)
		},
			[]float64{-2000, 0}},
		{"sigmoid", NewTensor([]int{3}, -800, 0, 800), nil, func(b *Builder, x, _, _ *Node) *Node {
			return b.Sigmoid(x)
		}, []float64{0, .5, 1}},
		{"softplus", NewTensor([]int{3}, -800, 0, 800), nil, func(b *Builder, x, _, _ *Node) *Node { return b.Softplus(x) },
			[]float64{0, math.Ln2, 800}},
		{"segment sum", rows, nil, func(b *Builder, x, _, bag *Node) *Node { return b.SegmentSum(x, bag) },
			[]float64{6, 12, 5, 2}},
		{"segment max", rows, nil, func(b *Builder, x, _, bag *Node) *Node { return b.SegmentMax(x, bag) }, []float64{5, 9, 5,
			2}},
		{"segment max mask", rows, nil, func(b *Builder, x, _, bag *Node) *Node { return b.SegmentMaxMask(x, bag) },
			[]float64{0, 1, 1, 1, 1, 0, 0, 0}},
		{"segment gather", NewTensor([]int{2, 1}, 3, 4), nil, func(b *Builder, x, _, bag *Node) *Node {
			return b.SegmentGather(x, bag)
		},
			[]float64{3, 4, 3, 0}},
		{"segment softmax", NewTensor([]int{4, 1}, 700, 5, 700, inf), nil,
			func(b *Builder, x, _, bag *Node) *Node { return b.SegmentSoftmax(x, bag) }, []float64{.5, 1, .5, 0}},
		{"conv", img, ker, func(b *Builder, x, y, _ *Node) *Node { return b.Conv2D(x, y, one, [2]int{}) },
			[]float64{-4, -4, -4, -4}},
		{"conv pad stride", img, ker, func(b *Builder, x, y, _ *Node) *Node { return b.Conv2D(x, y, [2]int{2, 2}, one) },
			[]float64{-1, -3, -7, -4}},
		{"pool ties", NewTensor([]int{1, 1, 2, 3}, 1, 1, 5, 1, 1, 7), nil,
			func(b *Builder, x, _, _ *Node) *Node { return b.MaxPool2D(x, [2]int{2, 2}, one) }, []float64{1, 7}},
		{"pool grad ties", NewTensor([]int{1, 1, 2, 3}, 1, 1, 5, 1, 1, 7), NewTensor([]int{1, 1, 1, 2}, 3, 4),
			func(b *Builder, x, y, _ *Node) *Node { return b.MaxPool2DGrad(x, y, [2]int{2, 2}, one) }, []float64{3, 0, 0, 0, 0,
				4}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			b := NewBuilder(c.name)
			env := Env{N: 4, B: 2, Values: map[string]*Tensor{"bag_of": NewInts(0, 1, 0, -1)}}
			bag := b.Input("bag_of", Int, Shape{N})
			leaf := func(name string, v *Tensor) *Node {
				if v == nil {
					return nil
				}
				s := Shape{}
				for i, d := range v.Shape {
					s = append(s, Dim(d))
					if strings.HasPrefix(c.name, "segment") && i == 0 {
						s[0] = map[int]Dim{4: N, 2: B}[d]
					}
				}
				env.Values[name] = v
				return b.Input(name, Float, s)
			}
			y := c.build(b, leaf("x", c.x), leaf("y", c.y), bag)
			b.Output("y", y)
			got, err := Eval(finished(t, b), env)
			if err != nil {
				t.Fatal(err)
			}
			near(t, c.name, got["y"].Data, c.want, 1e-12)
		})
	}
}

// Padding instances change no number of the others, bit for bit.
func TestEvalPaddingChangesNothing(t *testing.T) {
	g, err := attentionGraph().Graph()
	if err != nil {
		t.Fatal(err)
	}
	env := attentionEnv()
	plain, err := Eval(g, env)
	if err != nil {
		t.Fatal(err)
	}
	for _, nobag := range []int{-1, 2, 99} {
		padded := attentionEnv()
		padded.N = 6
		x := append([]float64{math.Inf(1), 1e300, -7}, env.Values["instances"].Data...)
		padded.Values["instances"] = NewTensor([]int{6, 3}, append(x, 1, 2, 3)...)
		padded.Values["bag_of"] = NewInts(nobag, 0, 0, 1, 1, nobag)
		got, err := Eval(g, padded)
		if err != nil {
			t.Fatal(err)
		}
		// only the padded row is inf * 0 = NaN
		near(t, "probabilities", got["probabilities"].Data, plain["probabilities"].Data, 0)
		near(t, "attention", got["attention"].Data[1:5], plain["attention"].Data, 0)
	}
}

func TestEvalErrors(t *testing.T) {
	g, err := attentionGraph().Graph()
	if err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		name   string
		change func(e *Env)
		want   string
	}{
		{"missing", func(e *Env) { delete(e.Values, "Wc") }, "parameter Wc is missing: want float [3 2]"},
		{"shape", func(e *Env) { e.Values["instances"] = NewTensor([]int{4, 2}) },
			"input instances: want shape [4 3] ([N, 3]), got [4 2]"},
		{"type", func(e *Env) { e.Values["bag_of"] = NewTensor([]int{4}) }, "input bag_of: want int [4], got float [4]"},
		{"count", func(e *Env) { e.Values["bc"] = &Tensor{Shape: []int{2}, Data: []float64{1}} },
			"shape [2] has 2 numbers, got 1"},
		{"extent", func(e *Env) { e.B = 0 }, "at least one instance and one bag"},
	}
	for _, c := range cases {
		env := attentionEnv()
		c.change(&env)
		if _, err := Eval(g, env); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}
}

func TestTheMaximumOfAnEmptyBag(t *testing.T) {
	b := NewBuilder("max")
	b.Output("y", b.SegmentMax(b.Input("x", Float, Shape{N, 2}), b.Input("bag_of", Int, Shape{N})))
	env := Env{N: 1, B: 2, Values: map[string]*Tensor{"x": NewTensor([]int{1, 2}, 3, 4), "bag_of": NewInts(0)}}
	out, err := Eval(finished(t, b), env)
	if err != nil {
		t.Fatal(err)
	}
	none := math.Inf(-1)
	near(t, "y", out["y"].Data, []float64{3, 4, none, none}, 0)
}

func TestEvalAllKeepsEveryNode(t *testing.T) {
	g, err := attentionGraph().Graph()
	if err != nil {
		t.Fatal(err)
	}
	all, err := EvalAll(g, attentionEnv())
	if err != nil {
		t.Fatal(err)
	}
	out, err := Eval(g, attentionEnv())
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range g.Outputs {
		near(t, o.Name, out[o.Name].Data, all[o.Node.ID].Data, 0)
	}
	for i, v := range all {
		if v == nil {
			t.Errorf("node %d has no value", i)
		}
	}
}
