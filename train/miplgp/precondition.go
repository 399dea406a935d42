// A preconditioner by pivoted Cholesky factorisation.

package miplgp

import (
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/miplc/miplc/internal/ndarray"
)

// precondition computes the preconditioner P = L L' + noise of every class. L is a low-rank
// Cholesky factor of K with pivots, shared by all classes. P is at most the kernel matrix in the
// order of positive semidefinite matrices. With W = noise^-1 and R the inverse of the Cholesky
// factor of I + L' W L, P^-1 = W - W L R' R L' W. Noise, factor and the R of all classes are copied
// to the workspace. logDet is the log determinant of P for each class.
func (g *conjugate) precondition(h hyper, t *targets) (logDet []float64, err error) {
	n, columns := g.p.n(), g.columns()
	noise, logDet := make([]float32, n*columns), make([]float64, g.outputs)
	for c := range g.outputs {
		for i := range n {
			v := t.noise[c*n+i] + h.noise[c]
			logDet[c] += math.Log(v)
			for j := range g.width {
				noise[i*columns+c*g.width+j] = float32(v)
			}
		}
	}
	g.space.Put(inNoise, noise, n, columns)
	if g.rank == 0 {
		return logDet, nil
	}
	g.space.Put(inFactor, g.pivots.factor(h, g.rank).Data, n, g.rank)
	g.space.Run(g.inner, n, nil)
	inner := g.space.Get(inInner)
	size := g.rank * g.rank
	roots := make([]float32, 0, g.outputs*size)
	for c := range g.outputs {
		onePlus := mat.NewSymDense(g.rank, ndarray.Convert[float64](inner[c*size:(c+1)*size]))
		for i := range g.rank {
			onePlus.SetSym(i, i, onePlus.At(i, i)+1)
		}
		var chol mat.Cholesky
		if !chol.Factorize(onePlus) {
			return nil, errNotPositive
		}
		logDet[c] += chol.LogDet()
		_, inverse, err := inverseFactor(&chol)
		if err != nil {
			return nil, err
		}
		roots = append(roots, inverse.Data...)
	}
	g.space.Put(inRoots, roots, g.outputs*g.rank, g.rank)
	return logDet, nil
}

// inverseFactor returns the inverse of the lower Cholesky factor, in float32 too.
func inverseFactor(chol *mat.Cholesky) (*mat.TriDense, matrix, error) {
	var l, inverse mat.TriDense
	chol.LTo(&l)
	if err := inverse.InverseTri(&l); err != nil {
		return nil, matrix{}, errNotPositive
	}
	n := chol.SymmetricDim()
	return &inverse, matrix{Rows: n, Cols: n, Stride: n, Data: narrow(&inverse)}, nil
}

// pivots computes low-rank factors of kernels. It keeps the squared distances from instances that
// were pivots, because most become pivots again at the next hyper-parameters.
type pivots struct {
	x         matrix
	distances map[int][]float64
}

// from returns the squared distances of all instances from one.
func (p *pivots) from(pivot int) []float64 {
	if p.distances[pivot] == nil {
		n, dim := p.x.Rows, p.x.Cols
		own := make([]float64, n)
		rows(n, func(lo, hi int) {
			for i := lo; i < hi; i++ {
				own[i] = squaredDistance(p.x.Data[i*dim:(i+1)*dim], p.x.Data[pivot*dim:(pivot+1)*dim])
			}
		})
		p.distances[pivot] = own
	}
	return p.distances[pivot]
}

// factor returns L [n, rank] with L L' close to K and at most K. The next pivot is the row with the
// largest remainder.
func (p *pivots) factor(h hyper, rank int) matrix {
	n := p.x.Rows
	l := newMatrix(n, rank)
	rest := make([]float64, n)
	for i := range rest {
		rest[i] = h.scale
	}
	for j := range rank {
		pivot := floats.MaxIdx(rest)
		if rest[pivot] <= 1e-6*h.scale {
			break // the remaining columns stay 0
		}
		root := math.Sqrt(rest[pivot])
		row := l.Data[pivot*rank : pivot*rank+j]
		for i, squared := range p.from(pivot) {
			v, _ := matern(squared, h.length)
			v *= h.scale
			for q, w := range row {
				v -= float64(w) * float64(l.Data[i*rank+q])
			}
			v /= root
			l.Data[i*rank+j] = float32(v)
			rest[i] = math.Max(0, rest[i]-v*v)
		}
		rest[pivot] = 0
	}
	return l
}
