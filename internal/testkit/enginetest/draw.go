// Bags for tests.

package enginetest

import (
	"math/rand/v2"
	"strings"

	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/ndarray"
)

// Drawn returns seeded numbers in +-scale for every parameter. scales overrides the scale of single
// parameters.
func Drawn(g *graph.Graph, seed uint64, scales map[string]float64) (map[string][]float32, map[string]*graph.Tensor) {
	r := rand.New(rand.NewPCG(seed, 1))
	params, values := map[string][]float32{}, map[string]*graph.Tensor{}
	for _, p := range g.ByOp(graph.OpParam) {
		scale, ok := scales[p.Name]
		if !ok {
			scale = 0.3
		}
		shape := p.Shape.Concrete(0, 0)
		t := graph.NewTensor(shape)
		for i := range t.Data {
			t.Data[i] = float64(float32(scale * (2*r.Float64() - 1)))
		}
		if p.Name == "normalize.std" || strings.HasSuffix(p.Name, ".variance") { // positive
			for i := range t.Data {
				t.Data[i] = 1 + 0.5*r.Float64()
			}
			t.Data = ndarray.Convert[float64](ndarray.Convert[float32](t.Data))
		}
		params[p.Name], values[p.Name] = ndarray.Convert[float32](t.Data), t
	}
	return params, values
}

// Bag returns seeded instances of one bag.
func Bag(g *graph.Graph, n int, seed uint64) *graph.Tensor {
	r := rand.New(rand.NewPCG(seed, uint64(n)))
	t := graph.NewTensor(g.Input("instances").Shape.Concrete(n, 1))
	for i := range t.Data {
		t.Data[i] = float64(float32(r.NormFloat64()))
	}
	return t
}
