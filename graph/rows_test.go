// Rows of one bag do not depend on other bags.

package graph_test

import (
	"fmt"
	"maps"
	"math"
	"testing"

	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/testkit/modeltest"
)

// moved returns the batch with changed float rows of one bag.
func moved(g *graph.Graph, env graph.Env, bag int) graph.Env {
	bagOf := bagOfRows(g, env)
	out := graph.Env{N: env.N, B: env.B, Values: map[string]*graph.Tensor{}}
	maps.Copy(out.Values, env.Values)
	for _, n := range g.ByOp(graph.OpInput) {
		v := env.Values[n.Name]
		if n.Type == graph.Int || v == nil {
			continue
		}
		v = graph.NewTensor(v.Shape, append([]float64(nil), v.Data...)...)
		eachRow(n, v, bagOf, func(b int, x *float64) {
			if b == bag {
				*x = 1.25 - 0.5**x
			}
		})
		out.Values[n.Name] = v
	}
	return out
}

func bagOfRows(g *graph.Graph, env graph.Env) []int {
	for _, n := range g.ByOp(graph.OpInput) {
		if n.Type == graph.Int {
			return env.Values[n.Name].Ints
		}
	}
	return make([]int, env.N)
}

// eachRow calls f with every element of a value that has rows and the bag of its row.
func eachRow(n *graph.Node, v *graph.Tensor, bagOf []int, f func(bag int, x *float64)) {
	axis, step := -1, 1
	for i, d := range n.Shape {
		if d < 0 {
			axis = i
		}
	}
	if axis < 0 {
		return
	}
	for _, e := range v.Shape[axis+1:] {
		step *= e
	}
	for i := range v.Data {
		row := i / step % v.Shape[axis]
		if n.Shape[axis] == graph.N {
			row = bagOf[row]
		}
		f(row, &v.Data[i])
	}
}

// checkRows checks what the op table says about rows: a node whose ancestors do not combine
// bags does not change when another bag changes. It returns how many nodes of each kind it checked.
func checkRows(g *graph.Graph, env graph.Env) (apart, mixed int, err error) {
	plain, err := graph.EvalAll(g, env)
	if err != nil {
		return 0, 0, err
	}
	bagOf := bagOfRows(g, env)
	for bag := range env.B {
		other, err := graph.EvalAll(g, moved(g, env, bag))
		if err != nil {
			return 0, 0, err
		}
		for i, n := range g.Nodes {
			if len(n.Mixers()) > 0 {
				mixed++
				continue
			}
			apart++
			if n.Shape.Static() {
				for k, v := range plain[i].Data {
					if math.Float64bits(v) != math.Float64bits(other[i].Data[k]) {
						return 0, 0, fmt.Errorf("%v %%%d has no rows but changes with bag %d", n.Op, n.ID, bag)
					}
				}
				continue
			}
			at := 0
			eachRow(n, plain[i], bagOf, func(b int, x *float64) {
				if y := other[i].Data[at]; b != bag && b >= 0 && math.Float64bits(*x) != math.Float64bits(y) && err == nil {
					err = fmt.Errorf("%v %%%d: element %d of bag %d changes with bag %d", n.Op, n.ID, at, b, bag)
				}
				at++
			})
			if err != nil {
				return 0, 0, err
			}
		}
	}
	return apart, mixed, nil
}

func TestRowsOfOtherBagsStayAsTheyAre(t *testing.T) {
	apart, mixed := 0, 0
	check := func(name string, g *graph.Graph, env graph.Env) {
		a, m, err := checkRows(g, env)
		if err != nil {
			t.Errorf("%s: %v\n%s", name, err, g.Text())
		}
		apart, mixed = apart+a, mixed+m
	}
	for _, c := range modeltest.Cases() {
		check(c.Name, c.Graph, c.Env)
	}
	for seed := range uint64(200) {
		g := modeltest.RandomGraph(seed, modeltest.RandomOptions{})
		env := modeltest.RandomEnv(g, seed, []int{2, 1, 3})
		check(fmt.Sprint("random graph ", seed), g, env)
	}
	if apart < 1000 || mixed < 100 {
		t.Errorf("%d nodes depend on one bag, %d combine bags: too few for a meaningful test", apart, mixed)
	}
	t.Logf("%d nodes depend on one bag, %d combine bags", apart, mixed)
}
