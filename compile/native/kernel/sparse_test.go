// Products that leave out zeros.

package kernel

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"
)

// appendRow appends a row without its zeros.
func appendRow(s Sparse, row []float32, stride int) Sparse {
	groups := (len(row) + 63) / 64
	x, flags := make([]float32, max(1, 64*groups)), make([]uint64, groups)
	copy(x, row)
	nonZero(&Args{Dst: unsafe.Pointer(unsafe.SliceData(flags)), A: unsafe.Pointer(&x[0]), M: groups})
	return s.AppendRow(x, flags, 0, len(row), stride)
}

func TestSparseRows(t *testing.T) {
	nan, negativeZero := float32(math.NaN()), float32(math.Copysign(0, -1))
	x := make([]float32, 192)
	copy(x[60:], []float32{0, 2, nan, 0, negativeZero, 5})
	word := func(x float32, offset uint64) uint64 { return offset<<32 | uint64(math.Float32bits(x)) }
	for _, set := range Sets() {
		flags := make([]uint64, 3)
		set.Run[NonZero](&Args{Dst: unsafe.Pointer(&flags[0]), A: unsafe.Pointer(&x[0]), M: 3})
		for _, c := range []struct {
			from, to int
			want     Sparse
		}{
			{60, 66, Sparse{3, word(2, 8), word(nan, 16), word(5, 40)}},
			{62, 65, Sparse{1, word(nan, 0)}},
			{61, 192, Sparse{3, word(2, 0), word(nan, 8), word(5, 32)}},
			{66, 128, Sparse{0}},
			{61, 61, Sparse{0}},
		} {
			if got := (Sparse{}).AppendRow(x, flags, c.from, c.to, 8); !slices.Equal(got, c.want) {
				t.Errorf("%s: from %d to %d: %x, want %x", set.Name, c.from, c.to, got, c.want)
			}
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
		rows := make(Sparse, 0, m*(k+1))
		for i := range m {
			rows = appendRow(rows, a[i*k:(i+1)*k], elem*n)
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
