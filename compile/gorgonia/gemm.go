// Multiplies matrices of float32. On amd64 processors with AVX2 and FMA it uses its
// own kernel, three to five times as fast as gonum's, because training spends most of its time
// here. Elsewhere it calls gonum.

package gorgonia

import (
	"runtime"
	"sync"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"

	"github.com/miplc/miplc/internal/workers"
)

// Multiply computes c = a b + beta c for row-major matrices. c is [m, n], the inner size is k. With
// ta (tb), a (b) is stored transposed. The result does not depend on the number of processors, bit
// for bit, but it may depend on the kind of processor.
func Multiply(ta, tb bool, m, n, k int, a, b []float32, beta float32, c []float32) {
	if !ta && tb && n*k < unaligned {
		multiplyTiny(m, n, k, a, b, beta, c)
		return
	}
	if !accelerated || n < narrow || m*n*k < small {
		lda, ldb, fa, fb := k, n, blas.NoTrans, blas.NoTrans
		if ta {
			fa, lda = blas.Trans, m
		}
		if tb {
			fb, ldb = blas.Trans, k
		}
		gonum.Implementation{}.Sgemm(fa, fb, m, n, k, 1, a, lda, b, ldb, beta, c, n)
		return
	}
	scale(c[:m*n], beta)
	x, y := view(a, m, k, ta), view(b, k, n, tb)
	parts := min(runtime.GOMAXPROCS(0), (m+rows-1)/rows)
	if m*n*k < large || parts < 2 {
		block(x, y, 0, m, n, k, c)
		return
	}
	var wg workers.Group
	for w := range parts {
		wg.Go(func() { block(x, y, m*w/parts, m*(w+1)/parts, n, k, c) })
	}
	wg.Wait()
}

// multiplyTiny computes c = a bᵀ + beta c. gonum's kernel adds in an order that depends on the address of b modulo 16
// bytes. For tiny arrays, this address may differ between runs.
func multiplyTiny(m, n, k int, a, b []float32, beta float32, c []float32) {
	scale(c[:m*n], beta)
	for i := range c[:m*n] {
		x, y := a[i/n*k:][:k], b[i%n*k:][:k]
		sum := float32(0)
		for p := range x {
			sum += x[p] * y[p]
		}
		c[i] += sum
	}
}

const (
	unaligned = 8 // Go aligns arrays of fewer numbers to less than 16 bytes

	narrow = 6       // results with fewer columns leave most of a tile empty
	small  = 4 << 10 // products with fewer operations are slower with packing
	large  = 8 << 20 // products with more operations use several goroutines

	rows, cols = 6, 16 // size of a tile: twelve registers of eight numbers

	// Sizes of parts that fit the caches: depth is the inner size of the packed parts, wide the
	// number of columns of b and high the number of rows of a that are packed at once.
	depth, wide, high = 384, 512, 96
)

// matrix reads a matrix or its transpose.
type matrix struct {
	data     []float32
	row, col int // steps to the next row and column
}

func view(data []float32, rows, cols int, transposed bool) matrix {
	if transposed {
		return matrix{data, 1, rows}
	}
	return matrix{data, cols, 1}
}

func scale(c []float32, beta float32) {
	switch beta {
	case 0:
		clear(c)
	case 1:
	default:
		for i := range c {
			c[i] *= beta
		}
	}
}

// buffers contains packed parts.
type buffers struct {
	a [high * depth]float32
	b [wide * depth]float32
	c [rows * cols]float32
}

var pool = sync.Pool{New: func() any { return new(buffers) }}

// block adds rows from (included) to to (excluded) of the product a b to c.
func block(a, b matrix, from, to, n, k int, c []float32) {
	buf := pool.Get().(*buffers)
	defer pool.Put(buf)
	for p := 0; p < k; p += depth {
		d := min(depth, k-p)
		for j := 0; j < n; j += wide {
			w := min(wide, n-j)
			pack(buf.b[:], matrix{b.data[p*b.row+j*b.col:], b.col, b.row}, w, d, cols)
			for i := from; i < to; i += high {
				h := min(high, to-i)
				pack(buf.a[:], matrix{a.data[i*a.row+p*a.col:], a.row, a.col}, h, d, rows)
				tiles(buf, h, w, d, c[i*n+j:], n)
			}
		}
	}
}

// pack writes m, count rows of d numbers, as panels of size rows each: number 0 of all rows of the
// panel, then number 1, and so on. The last panel is filled with zeros.
func pack(dst []float32, m matrix, count, d, size int) {
	for first := 0; first < count; first += size {
		panel := dst[first*d : (first+size)*d]
		have := min(size, count-first)
		if have < size {
			clear(panel)
		}
		if m.row == 1 { // the rows of the panel are adjacent
			for p := range d {
				copy(panel[p*size:p*size+have], m.data[first+p*m.col:])
			}
			continue
		}
		for r := range have {
			src := m.data[(first+r)*m.row:]
			if m.col == 1 {
				for p, v := range src[:d] {
					panel[p*size+r] = v
				}
				continue
			}
			for p := range d {
				panel[p*size+r] = src[p*m.col]
			}
		}
	}
}

// tiles adds the product of the packed parts, h rows by w columns, to c.
func tiles(buf *buffers, h, w, d int, c []float32, stride int) {
	for j := 0; j < w; j += cols {
		b := &buf.b[j*d]
		for i := 0; i < h; i += rows {
			a := &buf.a[i*d]
			if i+rows <= h && j+cols <= w {
				tile(d, a, b, &c[i*stride+j], stride)
				continue
			}
			clear(buf.c[:])
			tile(d, a, b, &buf.c[0], cols)
			for r := range min(rows, h-i) {
				out := c[(i+r)*stride+j:][:min(cols, w-j)]
				for x, v := range buf.c[r*cols:][:len(out)] {
					out[x] += v
				}
			}
		}
	}
}
