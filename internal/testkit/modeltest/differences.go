// Finite differences.

package modeltest

import (
	"testing"

	"github.com/miplc/miplc/graph"
)

// Slope returns the central difference of a scalar output with respect to one element of a value of
// env.
func Slope(t testing.TB, g *graph.Graph, env graph.Env, output, by string, element int) float64 {
	t.Helper()
	const h = 1e-5
	x := &env.Values[by].Data[element]
	v := *x
	defer func() { *x = v }()
	var ends [2]float64
	for i, moved := range []float64{v + h, v - h} {
		*x = moved
		out, err := graph.Eval(g, env)
		if err != nil {
			t.Fatal(err)
		}
		ends[i] = out[output].Data[0]
	}
	return (ends[0] - ends[1]) / (2 * h)
}
