// Hyperparameters, and Adam on them.

package miplgp

import "math"

// noiseFloor is the minimum of the learned noise, which is added to that of the targets.
const noiseFloor = 1e-4

// hyper are the hyper-parameters: one kernel for all classes, and a constant mean and an additional
// noise variance per class. Gradients have the same type.
type hyper struct {
	scale  float64   // variance of the kernel
	length float64   // lengthscale
	mean   []float64 // [outputs]
	noise  []float64 // [outputs]
}

func newHyper(outputs int) hyper {
	return hyper{mean: make([]float64, outputs), noise: make([]float64, outputs)}
}

// raw are the unbounded variables of the optimiser. Positive hyper-parameters are the softplus of
// theirs.
type raw []float64

// firstRaw returns the start: scale and noises softplus(0), means 0.
func firstRaw(outputs int, length float64) raw {
	r := make(raw, 2+2*outputs)
	r[1] = softplusInverse(length)
	return r
}

func (r raw) hyper() hyper {
	outputs := len(r)/2 - 1
	h := newHyper(outputs)
	h.scale, h.length = softplus(r[0]), softplus(r[1])
	copy(h.mean, r[2:])
	for c := range h.noise {
		h.noise[c] = noiseFloor + softplus(r[2+outputs+c])
	}
	return h
}

// chain converts the gradient with respect to the hyper-parameters into that with respect to r.
func (r raw) chain(g hyper) []float64 {
	outputs := len(r)/2 - 1
	d := make([]float64, len(r))
	d[0], d[1] = g.scale*sigmoid(r[0]), g.length*sigmoid(r[1])
	copy(d[2:], g.mean)
	for c, v := range g.noise {
		d[2+outputs+c] = v * sigmoid(r[2+outputs+c])
	}
	return d
}

func softplus(x float64) float64 { return math.Max(x, 0) + math.Log1p(math.Exp(-math.Abs(x))) }
func sigmoid(x float64) float64  { return 1 / (1 + math.Exp(-x)) }

// softplusInverse returns x with softplus(x) = y, for y > 0.
func softplusInverse(y float64) float64 { return y + math.Log(-math.Expm1(-y)) }

// adam is the optimiser of Kingma and Ba with its usual constants.
type adam struct {
	m, v []float64
	step int
}

const (
	adamBeta1 = 0.9
	adamBeta2 = 0.999
	adamEps   = 1e-8
)

// descend moves r against the gradient g.
func (a *adam) descend(r raw, g []float64, lr float64) {
	if a.m == nil {
		a.m, a.v = make([]float64, len(r)), make([]float64, len(r))
	}
	a.step++
	c1 := 1 - math.Pow(adamBeta1, float64(a.step))
	c2 := 1 - math.Pow(adamBeta2, float64(a.step))
	for i, d := range g {
		a.m[i] = adamBeta1*a.m[i] + (1-adamBeta1)*d
		a.v[i] = adamBeta2*a.v[i] + (1-adamBeta2)*d*d
		r[i] -= lr * a.m[i] / c1 / (math.Sqrt(a.v[i]/c2) + adamEps)
	}
}
