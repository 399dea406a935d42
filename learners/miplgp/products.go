package miplgp

import (
	"sync/atomic"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
)

// Products multiplies float32 matrices, which is nearly all of the work of inducing
// points: c = a b, either of them transposed first if asked. The matrices have no gaps between
// rows. It must allow calls from several goroutines.
type Products interface {
	Gemm(transA, transB bool, a, b, c blas32.General) error
}

// multiplier multiplies with Products, or in Go without. The first error stays
// and is asked for where an evaluation ends.
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
