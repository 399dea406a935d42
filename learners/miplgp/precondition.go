package miplgp

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/miplc/miplc/internal/workers"
)

// preconditioner is P = L L' + noise, with the low-rank L of a Cholesky
// factorisation with pivots of K, shared by all classes; the noise is that of
// each class. P is below the kernel matrix in the order of positive
// semidefinite matrices.
type preconditioner struct {
	*multiplier
	width  int
	n      int
	noises []float32 // [n] by class
	factor matrix    // L, [n, rank]
	// solved is, for each class, noise^-1 L C^-1 with C the Cholesky factor of
	// I + L' noise^-1 L, so that P^-1 = noise^-1 - solved solved'.
	solved []matrix
	logDet []float64 // of P, by class
}

// noise is the noise variance of instance i in the system of column j.
func (p *preconditioner) noise(i, j int) float32 { return p.noises[j/p.width*p.n+i] }

func newPreconditioner(g *conjugate, h hyper, t *targets) (*preconditioner, error) {
	n, outputs := g.p.n(), g.p.outputs()
	p := &preconditioner{multiplier: g.multiplier, width: 1 + g.s.Probes, n: n, noises: make([]float32, n*outputs), logDet: make([]float64, outputs)}
	p.factor = pivotedCholesky(g.kernel, h.scale, g.s.Rank)
	for c := range outputs {
		for i := range n {
			v := t.noise[c*n+i] + h.noise[c]
			p.noises[c*n+i] = float32(v)
			p.logDet[c] += math.Log(v)
		}
		if err := p.prepare(c); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// prepare computes solved and adds to the determinant of a class.
func (p *preconditioner) prepare(c int) error {
	rank := p.factor.Cols
	if rank == 0 {
		p.solved = append(p.solved, matrix{})
		return nil
	}
	weighted := newMatrix(p.n, rank)
	for i := range p.n {
		for j := range rank {
			weighted.Data[i*rank+j] = p.factor.Data[i*rank+j] / p.noises[c*p.n+i]
		}
	}
	small := newMatrix(rank, rank)
	p.mul(true, false, weighted, p.factor, small)
	if err := p.err(); err != nil {
		return err
	}
	inner := mat.NewSymDense(rank, nil)
	for i := range rank {
		for j := i; j < rank; j++ {
			inner.SetSym(i, j, float64(small.Data[i*rank+j]))
		}
		inner.SetSym(i, i, inner.At(i, i)+1)
	}
	var chol mat.Cholesky
	if !chol.Factorize(inner) {
		return errNotPositive
	}
	p.logDet[c] += chol.LogDet()
	_, inverse, err := inverseFactor(&chol)
	if err != nil {
		return err
	}
	solved := newMatrix(p.n, rank)
	p.mul(false, true, weighted, inverse, solved)
	p.solved = append(p.solved, solved)
	return nil
}

// inverseFactor is the inverse of the lower Cholesky factor, in float32 too.
func inverseFactor(chol *mat.Cholesky) (*mat.TriDense, matrix, error) {
	var l, inverse mat.TriDense
	chol.LTo(&l)
	if err := inverse.InverseTri(&l); err != nil {
		return nil, matrix{}, errNotPositive
	}
	n := chol.SymmetricDim()
	m := newMatrix(n, n)
	for i := range n {
		for j := range i + 1 {
			m.Data[i*n+j] = float32(inverse.At(i, j))
		}
	}
	return &inverse, m, nil
}

// solve makes z = P^-1 r, column by column with the noise of its class.
func (p *preconditioner) solve(z, r matrix) {
	workers.Each(len(p.solved), 0, func(c int) {
		first := c * p.width
		own := newMatrix(p.n, p.width)
		for i := range p.n {
			copy(own.Data[i*p.width:(i+1)*p.width], r.Data[i*r.Cols+first:])
		}
		low := like(own)
		if rank := p.factor.Cols; rank > 0 {
			small := newMatrix(rank, p.width)
			p.mul(true, false, p.solved[c], own, small)
			p.mul(false, false, p.solved[c], small, low)
		}
		for i := range p.n {
			noise := p.noises[c*p.n+i]
			for j := range p.width {
				at := i*p.width + j
				z.Data[i*r.Cols+first+j] = own.Data[at]/noise - low.Data[at]
			}
		}
	})
}

// pivotedCholesky gives L [n, rank] with L L' close to k from below; the
// diagonal of k is all scale. A pivot is the row with the largest rest.
func pivotedCholesky(k matrix, scale float64, rank int) matrix {
	n := k.Rows
	l := newMatrix(n, rank)
	rest := slices.Repeat([]float64{scale}, n)
	for j := range rank {
		pivot := 0
		for i, v := range rest {
			if v > rest[pivot] {
				pivot = i
			}
		}
		if rest[pivot] <= 1e-6*scale {
			break // the columns left stay 0
		}
		root := math.Sqrt(rest[pivot])
		row := l.Data[pivot*rank : pivot*rank+j]
		for i := range n {
			v := float64(k.Data[i*k.Stride+pivot])
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
