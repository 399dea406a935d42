// Wolfe's method for the nearest point in a convex hull.

package plaggd

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
)

// nearestInHull sets w to the weights, at least 0 and with sum 1, that minimise w^T G w for a
// positive semi-definite G [n, n]. If G has the inner products of points, this is the point of
// their convex hull nearest to the origin. The method is the finite one of Wolfe (Mathematical
// Programming 11, 1976). It stops at the optimum up to rounding. If the minimum is not unique, the
// result depends only on the order of the points.
func nearestInHull(gram, w []float64) {
	n := len(w)
	h := hull{gram: gram, n: n, w: w}
	first, scale := 0, 0.0
	for j := range n {
		if h.at(j, j) < h.at(first, first) {
			first = j
		}
		scale = math.Max(scale, h.at(j, j))
	}
	clear(w)
	w[first], h.active = 1, []int{first}
	for range 20 * (n + 1) { // far more than needed; the bound ends cycles caused by rounding errors
		enter, gap := h.mostUseful()
		if gap <= 1e-13*scale || !h.add(enter) {
			return
		}
	}
}

type hull struct {
	gram   []float64
	n      int
	w      []float64
	active []int // points with a weight above 0
}

func (h *hull) at(i, j int) float64 { return h.gram[i*h.n+j] }

// mostUseful returns the point whose weight lowers the objective fastest, and an upper bound, by
// duality, of half the distance of the objective from its minimum.
func (h *hull) mostUseful() (point int, gap float64) {
	slope, value := make([]float64, h.n), 0.0
	for j := range slope {
		slope[j] = floats.Dot(h.gram[j*h.n:(j+1)*h.n], h.w)
		value += h.w[j] * slope[j]
		if slope[j] < slope[point] {
			point = j
		}
	}
	return point, value - slope[point]
}

// add adds a point and moves to the minimum over the active points, which may remove others. It
// returns false if the point does not lower the objective.
func (h *hull) add(point int) bool {
	if slices.Contains(h.active, point) {
		return false // optimal over the active points up to rounding
	}
	h.active = append(h.active, point)
	for {
		v, ok := h.affineMinimum()
		if !ok { // the point is in the affine hull of the others, up to rounding
			h.drop()
			return false
		}
		share, leaves := 1.0, -1 // step towards v with all weights at least 0
		for i, j := range h.active {
			if s := h.w[j] / (h.w[j] - v[i]); v[i] <= 0 && s < share {
				share, leaves = s, j
			}
		}
		sum := 0.0
		for i, j := range h.active {
			h.w[j] = math.Max(0, h.w[j]+share*(v[i]-h.w[j]))
			if j == leaves {
				h.w[j] = 0
			}
			sum += h.w[j]
		}
		for _, j := range h.active {
			h.w[j] /= sum
		}
		h.drop()
		if leaves < 0 {
			return true
		}
	}
}

// drop removes points without weight.
func (h *hull) drop() {
	h.active = slices.DeleteFunc(h.active, func(j int) bool { return h.w[j] == 0 })
}

// affineMinimum returns the weights with sum 1, of any sign, that minimise the objective over the
// active points: u / sum(u) with (G + scale 1 1^T) u = 1. It returns false if the points are
// dependent.
func (h *hull) affineMinimum() ([]float64, bool) {
	n := len(h.active)
	scale := 0.0
	for _, j := range h.active {
		scale = math.Max(scale, h.at(j, j))
	}
	l, u := make([]float64, n*n), make([]float64, n)
	for i := range n { // Cholesky, then the two triangular systems
		for j := range i + 1 {
			v := h.at(h.active[i], h.active[j]) + scale - floats.Dot(l[i*n:i*n+j], l[j*n:j*n+j])
			if i != j {
				l[i*n+j] = v / l[j*n+j]
			} else if v <= 1e-14*scale {
				return nil, false
			} else {
				l[i*n+i] = math.Sqrt(v)
			}
		}
	}
	for i := range n {
		u[i] = (1 - floats.Dot(l[i*n:i*n+i], u[:i])) / l[i*n+i]
	}
	for i := n - 1; i >= 0; i-- {
		for j := i + 1; j < n; j++ {
			u[i] -= l[j*n+i] * u[j]
		}
		u[i] /= l[i*n+i]
	}
	sum := floats.Sum(u)
	floats.Scale(1/sum, u)
	return u, true
}
