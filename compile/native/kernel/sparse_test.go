// Products that leave out zeros.

package kernel

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"
)

func TestSparseRows(t *testing.T) {
	nan, negativeZero := float32(math.NaN()), float32(math.Copysign(0, -1))
	x := []float32{0, 2, nan, 0, negativeZero, 5}
	word := func(x float32, offset uint64) uint64 { return offset<<32 | uint64(math.Float32bits(x)) }
	for _, c := range []struct {
		n, step int
		want    Sparse
	}{
		{6, 1, Sparse{3, word(2, 8), word(nan, 16), word(5, 40)}},
		{3, 2, Sparse{1, word(nan, 8)}},
		{1, 1, Sparse{0}},
		{0, 1, Sparse{0}},
	} {
		if got := make(Sparse, 0, 9).AppendRow(x, c.n, c.step, 8); !slices.Equal(got, c.want) {
			t.Errorf("%d numbers, %d apart: %x, want %x", c.n, c.step, got, c.want)
		}
	}
}

// TestSparseProducts compares products without zeros with whole ones, bit by bit. Both add in the same order.
func TestSparseProducts(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, d := range [][3]int{{50, 64, 500}, {64, 50, 500}, {3, 200, 65}, {1, 7, 1}} {
		m, k, n := d[0], d[1], d[2]
		draw := func(count int, zeros float64) []float32 {
			list := make([]float32, count)
			for i := range list {
				if r.Float64() >= zeros {
					list[i] = float32(r.NormFloat64())
				}
			}
			return list
		}
		start := func(x []float32) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(x)) }
		a, b, c := draw(m*k, 0.8), draw(k*n, 0), draw(m*n, 0)
		rows, columns := make(Sparse, 0, m*(k+1)), make(Sparse, 0, m*(k+1))
		for i := range m {
			rows = rows.AppendRow(a[i*k:], k, 1, elem*n)
		}
		turned := make([]float32, m*k)
		for i, x := range a {
			turned[i%k*m+i/k] = x
		}
		for i := range m {
			columns = columns.AppendRow(turned[i:], k, m, elem*n)
		}
		if !slices.Equal(rows, columns) {
			t.Errorf("%v: a factor and the transposed one, read by columns, have other rows", d)
		}
		for _, s := range Sets() {
			args := Args{Dst: start(make([]float32, m*n)), A: start(a), B: start(b), C: start(c), M: m, N: n, K: k,
				SD: elem * n, SA: elem * k, TA: elem, SB: elem * n, SC: elem * n}
			want := args.Dst
			s.Run[Gemm](&args)
			args.Dst, args.A = start(make([]float32, m*n)), unsafe.Pointer(unsafe.SliceData(rows))
			args.TD, args.K = k, len(rows)
			s.Run[SparseGemm](&args)
			if at := different(numbers(args.Dst, m*n), numbers(want, m*n)); at >= 0 {
				t.Errorf("%s, %v: another number at %d", s.Name, d, at)
			}
		}
	}
}
