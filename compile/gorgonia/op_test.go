// Every op and its gradient against the interpreter and finite differences.

package gorgonia_test

import (
	"math"
	"testing"

	"github.com/miplc/miplc/compile/gorgonia"
	"github.com/miplc/miplc/graph"
)

// eval returns the outputs that the interpreter computes.
func eval(t testing.TB, g *graph.Graph, rows, bags int, values map[string]*graph.Tensor) map[string]*graph.Tensor {
	t.Helper()
	out, err := graph.Eval(g, graph.Env{N: rows, B: bags, Values: values})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// compare fails if got differs from want by more than tol * max(1, |want|).
func compare[T gorgonia.Float](t testing.TB, what string, got []T, want []float64, tol float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d elements, want %d", what, len(got), len(want))
	}
	for i, w := range want {
		if d := math.Abs(float64(got[i]) - w); !(d <= tol*math.Max(1, math.Abs(w))) {
			t.Errorf("%s[%d] = %v, want %v", what, i, got[i], w)
			return
		}
	}
}

// differences returns the central finite differences of the loss by a parameter.
func differences(t testing.TB, g *graph.Graph, rows, bags int, values map[string]*graph.Tensor, name string) []float64 {
	t.Helper()
	x := values[name].Data
	d := make([]float64, len(x))
	for i, v := range x {
		const h = 1e-5
		x[i] = v + h
		up := eval(t, g, rows, bags, values)["loss"].Data[0]
		x[i] = v - h
		down := eval(t, g, rows, bags, values)["loss"].Data[0]
		x[i] = v
		d[i] = (up - down) / (2 * h)
	}
	return d
}

func TestEveryOpAgainstInterpreter(t *testing.T) {
	for i, c := range opCases {
		t.Run(c.name, func(t *testing.T) {
			s := newSheet(uint64(i))
			g := s.finish(t, c.build(s))
			want := eval(t, g, testN, testB, s.values)["y"].Data
			wide, _, _ := lower[float64](t, g, s.values, testN, testB)
			if err := wide.Run(inputs[float64](s.values)); err != nil {
				t.Fatal(err)
			}
			compare(t, "float64 y", wide.Output("y"), want, 1e-12)
			narrow, _, _ := lower[float32](t, g, s.values, testN, testB)
			for range 2 { // the second run reuses the memory of the first
				if err := narrow.Run(inputs[float32](s.values)); err != nil {
					t.Fatal(err)
				}
				compare(t, "float32 y", narrow.Output("y"), want, 5e-6)
			}
		})
	}
}

func TestEveryGradientAgainstFiniteDifferences(t *testing.T) {
	for i, c := range opCases {
		if c.flat {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			s := newSheet(uint64(i))
			g := s.finish(t, c.build(s))
			m, grads, _ := lower[float64](t, g, s.values, testN, testB)
			for range 2 {
				if err := m.Run(inputs[float64](s.values)); err != nil {
					t.Fatal(err)
				}
			}
			for _, p := range s.params {
				compare(t, "gradient of "+p, grads[p], differences(t, g, testN, testB, s.values, p), 1e-7)
			}
		})
	}
}
