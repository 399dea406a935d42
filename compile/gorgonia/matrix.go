// Matrix products, and operations that move elements.

package gorgonia

import (
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"
	"gorgonia.org/gorgonia"

	"github.com/miplc/miplc/graph"
)

// gemm computes c = a b + beta c for row-major matrices. c is [m, n], the inner size is k. ta or
// tb: that factor is stored transposed. The result does not depend on the number of processors.
func gemm[T Float](ta, tb bool, m, n, k int, a, b []T, beta T, c []T) {
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
	switch c := any(c).(type) {
	case []float32:
		gonum.Implementation{}.Sgemm(fa, fb, m, n, k, 1, any(a).([]float32), lda, any(b).([]float32), ldb, float32(beta), c,
			n)
	case []float64:
		gonum.Implementation{}.Dgemm(fa, fb, m, n, k, 1, any(a).([]float64), lda, any(b).([]float64), ldb, float64(beta), c,
			n)
	}
}

// unaligned is the size of arrays that Go aligns to less than 16 bytes.
const unaligned = 8

// multiplyTiny computes c = a bᵀ + beta c. gonum's kernel adds in an order that depends on the address of b modulo 16
// bytes. For tiny arrays, this address may differ between runs.
func multiplyTiny[T Float](m, n, k int, a, b []T, beta T, c []T) {
	for i := range c[:m*n] {
		sum := dot(a[i/n*k:][:k], b[i%n*k:])
		if beta != 0 { // 0 times NaN would be NaN
			sum += beta * c[i]
		}
		c[i] = sum
	}
}

// dot returns the inner product of x and as many elements of y.
func dot[T Float](x, y []T) (sum T) {
	for i, v := range x {
		sum += v * y[i]
	}
	return sum
}

// lowerMatMul lowers the product of [m, k] and [k, n].
func lowerMatMul[T Float](l *lowerer[T], n *graph.Node, in []*gorgonia.Node) *gorgonia.Node {
	shape := l.concrete(n)
	rows, inner, cols := shape[0], shapeOf(in[0])[1], shape[1]
	run := func(out []T, in [][]T, _ []int) { gemm(false, false, rows, cols, inner, in[0], in[1], 0, out) }
	grad := func(i int, x gorgonia.Nodes, _, dy *gorgonia.Node) *gorgonia.Node {
		if i == 0 {
			back := func(out []T, in [][]T, _ []int) { gemm(false, true, rows, inner, cols, in[0], in[1], 0, out) }
			return l.apply("MatMulGrad", shapeOf(x[0]), back, nil, dy, x[1])
		}
		back := func(out []T, in [][]T, _ []int) { gemm(true, false, inner, cols, rows, in[0], in[1], 0, out) }
		return l.apply("MatMulGrad", shapeOf(x[1]), back, nil, x[0], dy)
	}
	return l.apply("MatMul", shape, run, grad, in...)
}

// lowerMove lowers an op that only moves elements, such as Transpose or Concat. The gradient adds up the copies of an
// element, because Expand makes several.
func lowerMove[T Float](l *lowerer[T], n *graph.Node, in []*gorgonia.Node) *gorgonia.Node {
	moves := n.Moves(l.n, l.b)
	run := func(out []T, in [][]T, _ []int) {
		clear(out)
		for i, x := range in {
			for _, m := range moves[i] {
				out[m.To] = x[m.From]
			}
		}
	}
	back := func(i int) kernel[T] {
		return func(out []T, in [][]T, _ []int) {
			sums := make([]float64, len(out))
			for _, m := range moves[i] {
				sums[m.From] += float64(in[0][m.To])
			}
			round(out, sums)
		}
	}
	return l.linear(n, run, back, in...)
}
