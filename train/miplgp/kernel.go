// The Matern kernel, and squared distances.

package miplgp

import (
	"context"
	"math"
	"runtime"

	"gonum.org/v1/gonum/blas/blas32"
	"gonum.org/v1/gonum/mat"

	"github.com/miplc/miplc/compile/native"
	"github.com/miplc/miplc/compile/native/kernel"
	"github.com/miplc/miplc/internal/resources"
)

// matern returns the Matern-5/2 kernel of unit variance at a squared distance, and its derivative with respect to the
// lengthscale.
func matern(squared, length float64) (k, dLength float64) {
	u := math.Sqrt(5*squared) / length
	e := math.Exp(-u)
	return (1 + u + u*u/3) * e, u * u * (1 + u) / 3 * e / length
}

// rowBlock is the number of rows of one piece of work. It is constant, so that sums do not depend
// on the number of processors.
const rowBlock = 256

// rows runs f in parallel on all blocks of n rows. The calls must write to different memory.
func rows(n int, f func(lo, hi int)) {
	resources.Each((n+rowBlock-1)/rowBlock, 0, func(p int) { f(p*rowBlock, min(n, (p+1)*rowBlock)) })
}

// upper returns row i from the diagonal on.
func upper(m *mat.SymDense, i int) []float64 {
	r := m.RawSymmetric()
	return r.Data[i*r.Stride+i : i*r.Stride+r.N]
}

// kernels returns the kernel of squared distances and its derivative with respect to the lengthscale.
func kernels(squared *mat.SymDense, h hyper) (k, dk *mat.SymDense) {
	n := squared.SymmetricDim()
	k, dk = mat.NewSymDense(n, nil), mat.NewSymDense(n, nil)
	rows(n, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			kernel, slope := upper(k, i), upper(dk, i)
			for j, distance := range upper(squared, i) {
				v, d := matern(distance, h.length)
				kernel[j], slope[j] = h.scale*v, h.scale*d
			}
		}
	})
	return k, dk
}

// matrix is a float32 matrix, row-major.
type matrix = blas32.General

func newMatrix(r, c int) matrix {
	return matrix{Rows: r, Cols: c, Stride: c, Data: make([]float32, r*c)}
}

// rowsOf returns rows lo to hi of a matrix, sharing memory.
func rowsOf(m matrix, lo, hi int) matrix {
	return matrix{Rows: hi - lo, Cols: m.Cols, Stride: m.Stride, Data: m.Data[lo*m.Stride : hi*m.Stride]}
}

// centered returns the instances minus their mean, so that squared distances have small rounding errors, and the mean
// [dim].
func (p *problem) centered() (x matrix, mean []float32) {
	sum := make([]float64, p.Dim)
	for i, v := range p.X {
		sum[i%p.Dim] += float64(v)
	}
	mean = make([]float32, p.Dim)
	for j := range mean {
		mean[j] = float32(sum[j] * float64(p.Dim) / float64(len(p.X)))
	}
	x = newMatrix(p.n(), p.Dim)
	for i, v := range p.X {
		x.Data[i] = v - mean[i%p.Dim]
	}
	return x, mean
}

// squaredNorms returns the squared norms of the rows.
func squaredNorms(x matrix) []float32 {
	norms := make([]float32, x.Rows)
	for i := range norms {
		sum := 0.0
		for _, v := range x.Data[i*x.Stride : i*x.Stride+x.Cols] {
			sum += float64(v) * float64(v)
		}
		norms[i] = float32(sum)
	}
	return norms
}

// products are the kernels of matrix products. All give the same bits.
var products = kernel.Best()

// multiply computes c = a b, where a or b may be transposed first. The matrices have no gaps between rows.
func multiply(transA, transB bool, a, b, c matrix) {
	inner := a.Cols
	if transA {
		inner = a.Rows
	}
	native.Multiply(products, runtime.GOMAXPROCS(0), transA, transB, c.Rows, c.Cols, inner, a.Data, b.Data, c.Data)
}

// squaredDistances returns the squared distances [x.Rows, y.Rows]. It is incomplete if ctx ends.
func squaredDistances(ctx context.Context, x, y matrix) matrix {
	d := newMatrix(x.Rows, y.Rows)
	nx, ny := squaredNorms(x), squaredNorms(y)
	rows(x.Rows, func(lo, hi int) {
		if ctx.Err() != nil {
			return
		}
		piece := rowsOf(d, lo, hi)
		multiply(false, true, rowsOf(x, lo, hi), y, piece)
		for i := range piece.Rows {
			row := piece.Data[i*piece.Stride : i*piece.Stride+piece.Cols]
			for j, v := range row {
				row[j] = max(0, nx[lo+i]+ny[j]-2*v)
			}
		}
	})
	return d
}
