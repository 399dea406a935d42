// Products of matrices of float32, in gonum.

package gorgonia

import (
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"
)

// multiply computes c = a b + beta c for row-major matrices. c is [m, n], the inner size is k. With
// ta (tb), a (b) is stored transposed. The result does not depend on the number of processors.
func multiply(ta, tb bool, m, n, k int, a, b []float32, beta float32, c []float32) {
	if !ta && tb && n*k < unaligned {
		multiplyTiny(m, n, k, a, b, beta, c)
		return
	}
	lda, ldb, fa, fb := k, n, blas.NoTrans, blas.NoTrans
	if ta {
		fa, lda = blas.Trans, m
	}
	if tb {
		fb, ldb = blas.Trans, k
	}
	gonum.Implementation{}.Sgemm(fa, fb, m, n, k, 1, a, lda, b, ldb, beta, c, n)
}

// unaligned is the size of arrays that Go aligns to less than 16 bytes.
const unaligned = 8

// multiplyTiny computes c = a bᵀ + beta c. gonum's kernel adds in an order that depends on the address of b modulo 16
// bytes. For tiny arrays, this address may differ between runs.
func multiplyTiny(m, n, k int, a, b []float32, beta float32, c []float32) {
	for i := range c[:m*n] {
		x, y := a[i/n*k:][:k], b[i%n*k:][:k]
		sum := float32(0)
		for p := range x {
			sum += x[p] * y[p]
		}
		if beta != 0 { // 0 times NaN would be NaN
			sum += beta * c[i]
		}
		c[i] = sum
	}
}
