// Matrix products, and operations that move elements.

package gorgonia

import (
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"
	"gorgonia.org/gorgonia"

	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/ndarray"
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

// permute copies x to out, reading it with the given strides.
func permute[T Float](shape, strides []int) kernel[T] {
	loops := ndarray.NewLoops(shape, ndarray.Strides(shape), strides)
	return func(out []T, in [][]T, _ []int) { ndarray.CopyStrided(loops, out, in[0]) }
}

// lowerTranspose lowers a permutation of axes.
func lowerTranspose[T Float](l *lowerer[T], n *graph.Node, in []*gorgonia.Node) *gorgonia.Node {
	if len(n.Attrs.Perm) == 0 {
		return lowerReshape(l, n, in)
	}
	shape, x := l.concrete(n), shapeOf(in[0])
	own := ndarray.Strides(x)
	there, result := make([]int, len(x)), ndarray.Strides(shape)
	back := make([]int, len(x))
	for i, p := range n.Attrs.Perm {
		there[i] = own[p]
		back[p] = result[i]
	}
	return l.linear(n, permute[T](shape, there), func(int) kernel[T] { return permute[T](x, back) }, in...)
}

// lowerReshape copies the value. If both nodes shared memory, gorgonia could overwrite a value that
// another node still reads.
func lowerReshape[T Float](l *lowerer[T], n *graph.Node, in []*gorgonia.Node) *gorgonia.Node {
	run := func(out []T, in [][]T, _ []int) { copy(out, in[0]) }
	return l.linear(n, run, func(int) kernel[T] { return run }, in...)
}

// lowerExpand repeats axes of size 1.
func lowerExpand[T Float](l *lowerer[T], n *graph.Node, in []*gorgonia.Node) *gorgonia.Node {
	shape, x := tensorShape(l.concrete(n)), shapeOf(in[0])
	strides := ndarray.BroadcastStrides(x, shape)
	return l.linear(n, permute[T](shape, strides), func(int) kernel[T] { return sumTo[T](shape, strides) }, in...)
}

// sumTo adds the elements of an array of the given shape to the elements of out that strides
// select.
func sumTo[T Float](shape, strides []int) kernel[T] {
	loops := ndarray.NewLoops(shape, strides, ndarray.Strides(shape))
	n, step := loops.Length(), loops.Step()[0]
	return func(out []T, in [][]T, _ []int) {
		sums := make([]float64, len(out))
		loops.Each(func(at [3]int) {
			for i, v := range in[0][at[1] : at[1]+n] {
				sums[at[0]+i*step] += float64(v)
			}
		})
		round(out, sums)
	}
}

// lowerConcat lowers the concatenation along an axis.
func lowerConcat[T Float](l *lowerer[T], n *graph.Node, in []*gorgonia.Node) *gorgonia.Node {
	shape, axis := l.concrete(n), n.Attrs.Axis
	outer, step := ndarray.Blocks(shape, axis)
	wide := shape[axis] * step
	widths, offsets := make([]int, len(in)), make([]int, len(in))
	at := 0
	for i, x := range in {
		widths[i], offsets[i] = shapeOf(x)[axis]*step, at
		at += widths[i]
	}
	run := func(out []T, in [][]T, _ []int) {
		for i, x := range in {
			ndarray.Paste(out, x, outer, widths[i], wide, offsets[i])
		}
	}
	back := func(i int) kernel[T] {
		return func(out []T, in [][]T, _ []int) { ndarray.Cut(out, in[0], outer, widths[i], wide, offsets[i]) }
	}
	return l.linear(n, run, back, in...)
}

// lowerPart lowers Slice (elements Start to End of an axis) and Pad (Start zeros before the input);
// each is the gradient of the other.
func lowerPart[T Float](l *lowerer[T], n *graph.Node, in []*gorgonia.Node) *gorgonia.Node {
	shape, axis := l.concrete(n), n.Attrs.Axis
	outer, step := ndarray.Blocks(shape, axis)
	width, wide, offset := shape[axis]*step, shapeOf(in[0])[axis]*step, n.Attrs.Start*step
	take := func(out []T, in [][]T, _ []int) { ndarray.Cut(out, in[0], outer, width, wide, offset) }
	put := func(out []T, in [][]T, _ []int) {
		clear(out)
		ndarray.Paste(out, in[0], outer, width, wide, offset)
	}
	run, back := kernel[T](take), kernel[T](put)
	if n.Op == graph.OpPad {
		width, wide = wide, width
		run, back = put, take
	}
	return l.linear(n, run, func(int) kernel[T] { return back }, in...)
}
