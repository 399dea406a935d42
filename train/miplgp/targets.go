// Targets of the instances, and their confidences.

package miplgp

import "math"

// targets are the regression targets of all classes. Element c*n+i of each slice belongs to class c
// and instance i.
type targets struct {
	p     *problem
	eps   float64
	y     []float64 // log alpha - noise/2
	noise []float64 // log(1/alpha + 1)
}

// newTargets returns the targets for uniform confidences over the augmented candidate sets.
func newTargets(p *problem, eps float64) *targets {
	size := p.n() * p.outputs()
	t := &targets{p: p, eps: eps, y: make([]float64, size), noise: make([]float64, size)}
	t.setConfidences(make([]float64, size), true)
	return t
}

// setConfidences sets the confidences of every instance to the softmax of f over its augmented candidate set
// and updates the targets. It updates the noise only if noise is true.
func (t *targets) setConfidences(f []float64, noise bool) {
	n, row := t.p.n(), make([]float64, t.p.outputs())
	for i := range n {
		t.p.confidences(i, f, row)
		for c, confidence := range row {
			y, v := dirichlet(t.eps + confidence)
			t.y[c*n+i] = y
			if noise {
				t.noise[c*n+i] = v
			}
		}
	}
}

// confidences sets a row to the softmax of f at instance i over its candidates among the classes of
// the row, and to 0 for the other classes.
func (p *problem) confidences(i int, f, row []float64) {
	for c := range row {
		row[c] = math.Inf(-1)
		if c == p.Classes || p.Candidates[p.BagOf[i]*p.Classes+c] != 0 {
			row[c] = f[c*p.n()+i]
		}
	}
	softmax(row, row)
}

// dirichlet returns mean and variance of the normal distribution that approximates the logarithm of
// a gamma variable of shape alpha.
func dirichlet(alpha float64) (mean, variance float64) {
	variance = math.Log(1/alpha + 1)
	return math.Log(alpha) - variance/2, variance
}
