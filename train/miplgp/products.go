// Matrix products, by a device or in Go.

package miplgp

import (
	"sync/atomic"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
)

// Products multiplies float32 matrices, which is nearly all of the work with inducing points. Gemm
// computes c = a b, where a or b may be transposed first. The matrices have no gaps between rows.
// Gemm must be safe for concurrent use.
type Products interface {
	Gemm(transA, transB bool, a, b, c blas32.General) error
}

// multiplier multiplies with Products, or in Go if it is nil. It keeps the first error, which is
// checked at the end of an evaluation.
type multiplier struct {
	products Products
	failed   atomic.Pointer[error]
}

func (m *multiplier) mul(transA, transB bool, a, b, c matrix) {
	if m.products == nil {
		blas32.Gemm(transposed(transA), transposed(transB), 1, a, b, 0, c)
		return
	}
	if err := m.products.Gemm(transA, transB, a, b, c); err != nil {
		m.failed.CompareAndSwap(nil, &err)
	}
}

func (m *multiplier) err() error {
	if err := m.failed.Load(); err != nil {
		return *err
	}
	return nil
}

func transposed(yes bool) blas.Transpose {
	if yes {
		return blas.Trans
	}
	return blas.NoTrans
}
