// Quadratic programs against their conditions of optimality.

package plaggd

import (
	"context"
	"fmt"
	"math"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/miplc/miplc/internal/ndarray"
)

// gramOf returns the inner products of points [n, d] row-major.
func gramOf(points []float64, n, d int) []float64 {
	gram := make([]float64, n*n)
	for i := range n {
		for j := range n {
			gram[i*n+j] = floats.Dot(points[i*d:(i+1)*d], points[j*d:(j+1)*d])
		}
	}
	return gram
}

// optimal checks the Karush-Kuhn-Tucker conditions: along the direction of the minimum, no point is
// nearer to the origin than the minimum itself.
func optimal(t *testing.T, gram, w []float64, tolerance float64) {
	t.Helper()
	n, scale, value := len(w), 0.0, 0.0
	if math.Abs(floats.Sum(w)-1) > 1e-12 || floats.Min(w) < 0 {
		t.Fatalf("weights %v", w)
	}
	for i := range n {
		value += w[i] * floats.Dot(gram[i*n:(i+1)*n], w)
		scale = math.Max(scale, gram[i*n+i])
	}
	for i := range n {
		if slope := floats.Dot(gram[i*n:(i+1)*n], w); slope < value-tolerance*scale || math.IsNaN(slope) {
			t.Fatalf("point %d could still lower the objective %g by %g (scale %g), weights %v", i, value, value-slope, scale, w)
		}
	}
}

func TestNearestInHull(t *testing.T) {
	rng := ndarray.NewStream(1, "hull")
	for n := 1; n <= 12; n++ {
		for _, d := range []int{1, 2, 3, 8, 40} {
			for _, shift := range []float64{0, 0.5, 5} {
				for _, scale := range []float64{1e-6, 1, 1e6} {
					points := make([]float64, n*d)
					for i := range points {
						points[i] = scale * (rng.NormFloat64() + shift)
					}
					for range n / 3 { // equal points, as duplicates in the data give
						copy(points[rng.IntN(n)*d:][:d], points[rng.IntN(n)*d:][:d])
					}
					gram, w := gramOf(points, n, d), make([]float64, n)
					nearestInHull(gram, w)
					optimal(t, gram, w, 1e-9)
				}
			}
		}
	}
}

func TestNearestInHullByHand(t *testing.T) {
	for _, c := range []struct {
		points []float64 // in the plane
		want   []float64
	}{
		{[]float64{3, 4}, []float64{1}},
		{[]float64{1, 1, 1, -1}, []float64{0.5, 0.5}},
		{[]float64{1, 1, 1, -3}, []float64{0.75, 0.25}},
		{[]float64{1, 0, 2, 1, 2, -1}, []float64{1, 0, 0}},
		{[]float64{0, 0, 2, 1}, []float64{1, 0}},
		{[]float64{2, 0, -1, math.Sqrt(3), -1, -math.Sqrt(3)}, []float64{1. / 3, 1. / 3, 1. / 3}},
	} {
		n := len(c.want)
		w := make([]float64, n)
		nearestInHull(gramOf(c.points, n, 2), w)
		if !floats.EqualApprox(w, c.want, 1e-12) {
			t.Errorf("points %v: weights %v, want %v", c.points, w, c.want)
		}
	}
}

// The projection subtracts the same number from all values that stay above 0.
func TestToSimplex(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   float64
	}{
		{[]float64{5}, 4},
		{[]float64{-5}, -6},
		{[]float64{0.25, 0.75}, 0},
		{[]float64{2, 0}, 1},
		{[]float64{0, 0, 0, 0}, -0.25},
		{[]float64{0.9, 0.9, -4}, 0.4},
		{[]float64{-1, -1, -3}, -1.5},
	} {
		if got := toSimplex(c.values); math.Abs(got-c.want) > 1e-15 {
			t.Errorf("%v: %g, want %g", c.values, got, c.want)
		}
	}
}

// randomGraph returns the graph of points in three clusters.
func randomGraph(t *testing.T, m, k int) *graphOf {
	t.Helper()
	rng := ndarray.NewStream(uint64(m), "graph")
	x := mat.NewDense(m, 6, nil)
	for i := range m {
		for j := range 6 {
			x.Set(i, j, rng.NormFloat64()+3*float64((i+j)%3))
		}
	}
	g, err := newGraph(context.Background(), unitRows(x), k)
	if err != nil {
		t.Fatal(err)
	}
	g.solve(context.Background(), 1, 0, nil)
	for i := range g.weights {
		optimal(t, g.grams[i], g.weights[i], 1e-9)
	}
	return g
}

// The confidences of larger problems are feasible and optimal in every row, with and without a
// target.
func TestLabelling(t *testing.T) {
	const classes = 7
	for _, m := range []int{2, 30, 400} {
		for _, pull := range []float64{0, 0.01, 1, 100} {
			t.Run(fmt.Sprint(m, pull), func(t *testing.T) {
				rng := ndarray.NewStream(7, "labelling", uint64(m))
				q := labelling{graph: randomGraph(t, m, 10), pull: pull, target: mat.NewDense(m, classes, nil)}
				for i := range m {
					set := rng.Perm(classes)[:1+rng.IntN(4)]
					q.candidates = append(q.candidates, set)
					for c := range classes {
						q.target.Set(i, c, rng.NormFloat64())
					}
				}
				p := uniform(q.candidates, classes)
				before := q.value(p)
				if err := q.solve(context.Background(), p); err != nil {
					t.Fatal(err)
				}
				for i, set := range q.candidates {
					sum, all := 0.0, floats.Sum(p.RawRowView(i))
					for _, c := range set {
						sum += p.At(i, c)
					}
					if math.Abs(sum-1) > 1e-12 || math.Abs(all-1) > 1e-12 || floats.Min(p.RawRowView(i)) < 0 {
						t.Fatalf("row %d is not feasible: %v, candidates %v", i, p.RawRowView(i), set)
					}
				}
				gap := q.gap(p, mat.NewDense(m, classes, nil), mat.NewDense(m, classes, nil))
				if limit := 1e-9; gap > limit && (pull > 0 || gap > looseGap) {
					t.Errorf("the duality gap is %g", gap)
				}
				if after := q.value(p); after > before {
					t.Errorf("the objective rose from %g to %g", before, after)
				}
			})
		}
	}
}
