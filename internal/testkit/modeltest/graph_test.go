// Random graphs are valid, bounded and seeded.

package modeltest_test

import (
	"maps"
	"math"
	"testing"

	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/testkit/modeltest"
)

func TestCasesCoverTheTable(t *testing.T) {
	names, covered := map[string]bool{}, map[graph.Op]bool{}
	for _, c := range modeltest.Cases() {
		if names[c.Name] {
			t.Errorf("two cases are called %s", c.Name)
		}
		names[c.Name], covered[c.Op] = true, true
		if _, err := graph.Eval(c.Graph, c.Env); err != nil {
			t.Errorf("%s: %v", c.Name, err)
		}
		if len(c.Graph.ByOp(c.Op)) == 0 {
			t.Errorf("%s does not use its op", c.Name)
		}
	}
	for _, op := range graph.AllOps() {
		if !covered[op] {
			t.Errorf("no case for %v", op)
		}
	}
}

func TestRandomUsesTheTable(t *testing.T) {
	used := map[graph.Op]int{}
	for seed := range uint64(200) {
		for _, x := range modeltest.RandomGraph(seed, modeltest.RandomOptions{Images: seed%4 == 0}).Nodes {
			used[x.Op]++
		}
	}
	for _, op := range graph.AllOps() {
		switch op {
		case graph.OpSign, graph.OpGreater, graph.OpGreaterOrEqual, graph.OpMaxMask, graph.OpSegmentMaxMask: // not continuous
		case graph.OpAttention: // made by SingleBag
		case graph.OpSegmentAttentionGrad, graph.OpAttentionGrad, graph.OpConv2DGradInput, graph.OpConv2DGradWeight,
			graph.OpMaxPool2DGrad:
			// made by gradients
		default:
			if used[op] < 5 {
				t.Errorf("%v occurs %d times in 200 graphs", op, used[op])
			}
		}
	}
}

func TestRandomIsSeededAndBounded(t *testing.T) {
	for seed := range uint64(200) {
		o := modeltest.RandomOptions{Images: seed%4 == 0, Steps: 5 + int(seed%30)}
		g := modeltest.RandomGraph(seed, o)
		if again := modeltest.RandomGraph(seed, o); g.Text() != again.Text() {
			t.Fatalf("seed %d gives two graphs", seed)
		}
		for _, sizes := range [][]int{{1}, {3, 1, 5}, {50, 2}} {
			env := modeltest.RandomEnv(g, seed, sizes)
			all, err := graph.EvalAll(g, env)
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			for i, v := range all {
				for _, x := range v.Data {
					if !(math.Abs(x) <= 2000) { // what keep squashes may be larger before it
						t.Fatalf("seed %d, sizes %v: node %d is %v\n%s", seed, sizes, i, x, g.Text())
					}
				}
			}
		}
	}
}

// Padding instances must change neither the values of bags nor those of the others.
func TestRandomIgnoresPadding(t *testing.T) {
	for seed := range uint64(100) {
		g := modeltest.RandomGraph(seed, modeltest.RandomOptions{Images: seed%4 == 0})
		env := modeltest.RandomEnv(g, seed, []int{3, 1, 5})
		padded := graph.Env{N: env.N + 2, B: env.B, Values: map[string]*graph.Tensor{}}
		maps.Copy(padded.Values, env.Values)
		x := env.Values["instances"]
		shape := append([]int{padded.N}, x.Shape[1:]...)
		row := len(x.Data) / env.N
		padded.Values["instances"] = graph.NewTensor(shape, append(append([]float64(nil), x.Data...), x.Data[:2*row]...)...)
		padded.Values["bag_of"] = graph.NewInts(append(append([]int(nil), env.Values["bag_of"].Ints...), -1, -1)...)
		want, err := graph.Eval(g, env)
		if err != nil {
			t.Fatal(err)
		}
		got, err := graph.Eval(g, padded)
		if err != nil {
			t.Fatal(err)
		}
		for name, w := range want {
			for i, v := range w.Data {
				if got[name].Data[i] != v {
					t.Fatalf("seed %d: %s changes from %v to %v\n%s", seed, name, v, got[name].Data[i], g.Text())
				}
			}
		}
	}
}
