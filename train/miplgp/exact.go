// The objective by dense factorisation.

package miplgp

import (
	"context"
	"errors"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/miplc/miplc/internal/ndarray"
)

// evaluation is the value of an objective at one set of hyper-parameters.
type evaluation struct {
	// loss is minus the log marginal likelihood per class and instance, or the bound or approximation
	// of it that the solver computes.
	loss float64
	grad hyper     // of loss
	f    []float64 // posterior means at the instances, class by class
}

// objective is the marginal likelihood as one solver computes it.
type objective interface {
	evaluate(ctx context.Context, h hyper, t *targets) (*evaluation, error)
	// posterior returns what predictions need.
	posterior(ctx context.Context, h hyper, t *targets) (*posterior, error)
}

// errNotPositive reports a kernel matrix that could not be factorised.
var errNotPositive = errors.New("the kernel matrix is not positive definite in floating point: are features " +
	"infinite or of very different size? Use data.normalize: training")

// exact computes everything with Cholesky factors in float64.
type exact struct {
	p       *problem
	x       matrix // [n, d] centred
	shift   []float32
	squared *mat.SymDense // squared distances
}

func newExact(p *problem) *exact {
	e, n := &exact{p: p}, p.n()
	e.x, e.shift = p.centered()
	e.squared = mat.NewSymDense(n, nil)
	rows(n, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			for j := i + 1; j < n; j++ {
				e.squared.SetSym(i, j, squaredDistance(p.X[i*p.Dim:(i+1)*p.Dim], p.X[j*p.Dim:(j+1)*p.Dim]))
			}
		}
	})
	return e
}

func squaredDistance(x, y []float32) float64 {
	sum := 0.0
	for i, v := range x {
		d := float64(v) - float64(y[i])
		sum += d * d
	}
	return sum
}

// system factorises K plus the noise of a class and solves for the residuals of its targets.
func (e *exact) system(k *mat.SymDense, h hyper, t *targets, c int) (*mat.Cholesky, *mat.VecDense, *mat.VecDense,
	error) {
	n := e.p.n()
	a := mat.NewSymDense(n, nil)
	a.CopySym(k)
	residual := mat.NewVecDense(n, nil)
	for i := range n {
		a.SetSym(i, i, a.At(i, i)+t.noise[c*n+i]+h.noise[c])
		residual.SetVec(i, t.y[c*n+i]-h.mean[c])
	}
	var chol mat.Cholesky
	if !chol.Factorize(a) {
		return nil, nil, nil, errNotPositive
	}
	alpha := mat.NewVecDense(n, nil)
	if err := chol.SolveVecTo(alpha, residual); err != nil {
		return nil, nil, nil, errNotPositive
	}
	return &chol, residual, alpha, nil
}

func (e *exact) evaluate(ctx context.Context, h hyper, t *targets) (*evaluation, error) {
	n, outputs := e.p.n(), e.p.outputs()
	k, dk := kernels(e.squared, h)
	out := &evaluation{grad: newHyper(outputs), f: make([]float64, n*outputs)}
	share := 1 / float64(n*outputs)
	for c := range outputs {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		chol, residual, alpha, err := e.system(k, h, t, c)
		if err != nil {
			return nil, err
		}
		out.loss += share * (mat.Dot(residual, alpha) + chol.LogDet() + float64(n)*math.Log(2*math.Pi)) / 2
		var inverse mat.SymDense
		if err := chol.InverseTo(&inverse); err != nil {
			return nil, errNotPositive
		}
		scale, length, noise, mean := 0.0, 0.0, 0.0, 0.0
		a := alpha.RawVector().Data
		for i := range n {
			// G = A^-1 - alpha alpha^T; the derivative is tr(G dA) / 2.
			g, kernel, slope := upper(&inverse, i), upper(k, i), upper(dk, i)
			for j := 1; j < n-i; j++ {
				g := g[j] - a[i]*a[i+j]
				scale += 2 * g * kernel[j]
				length += 2 * g * slope[j]
			}
			diagonal := g[0] - a[i]*a[i]
			scale += diagonal * kernel[0]
			noise += diagonal
			mean -= a[i]
			out.f[c*n+i] = t.y[c*n+i] - (t.noise[c*n+i]+h.noise[c])*a[i]
		}
		out.grad.scale += share * scale / h.scale / 2
		out.grad.length += share * length / 2
		out.grad.noise[c] = share * noise / 2
		out.grad.mean[c] = share * mean
	}
	return out, nil
}

func (e *exact) posterior(ctx context.Context, h hyper, t *targets) (*posterior, error) {
	n := e.p.n()
	k, _ := kernels(e.squared, h)
	post := &posterior{classes: e.p.Classes, h: h, shift: e.shift, points: e.x, v: n}
	post.alpha = make([]float32, n*e.p.outputs())
	for c := range e.p.outputs() {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		chol, _, alpha, err := e.system(k, h, t, c)
		if err != nil {
			return nil, err
		}
		var inverse mat.SymDense
		if err := chol.InverseTo(&inverse); err != nil {
			return nil, errNotPositive
		}
		for i := range n {
			post.alpha[i*e.p.outputs()+c] = float32(alpha.AtVec(i))
		}
		post.reduce = append(post.reduce, narrow(&inverse))
	}
	return post, nil
}

// narrow returns a float32 copy of a matrix, row-major.
func narrow(m mat.Matrix) []float32 {
	return ndarray.Convert[float32](mat.DenseCopyOf(m).RawMatrix().Data)
}
