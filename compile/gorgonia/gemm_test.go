// Matrix products against their definition, with any number of processors.

package gorgonia

import (
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
)

func random(rng *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(rng.NormFloat64())
	}
	return x
}

// product computes the matrix product in float64 from its definition.
func product(ta, tb bool, m, n, k int, a, b []float32, beta float32, c []float32) []float64 {
	out := make([]float64, m*n)
	for i := range m {
		for j := range n {
			sum := float64(beta) * float64(c[i*n+j])
			for p := range k {
				x, y := i*k+p, p*n+j
				if ta {
					x = p*m + i
				}
				if tb {
					y = j*k + p
				}
				sum += float64(a[x]) * float64(b[y])
			}
			out[i*n+j] = sum
		}
	}
	return out
}

func TestMultiplyAgainstDefinition(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	sizes := [][3]int{{1, 1, 1}, {6, 16, 100}, {7, 17, 101}, {37, 13, 38}, {3, 600, 9}, {130, 130, 100}}
	for _, s := range sizes {
		m, n, k := s[0], s[1], s[2]
		for _, ta := range []bool{false, true} {
			for _, tb := range []bool{false, true} {
				for _, beta := range []float32{0, 1, -0.5} {
					a, b, c := random(rng, m*k), random(rng, k*n), random(rng, m*n)
					want := product(ta, tb, m, n, k, a, b, beta, c)
					gemm(ta, tb, m, n, k, a, b, beta, c)
					for i, w := range want {
						if d := math.Abs(float64(c[i]) - w); d > 1e-5*math.Sqrt(float64(k))+1e-5*math.Abs(w) {
							t.Fatalf("%dx%dx%d, transposed %v %v, beta %v: element %d is %v, want %v", m, n, k, ta, tb, beta, i, c[i], w)
						}
					}
				}
			}
		}
	}
}

func TestBetaZeroForgetsNaN(t *testing.T) {
	c := slices.Repeat([]float32{float32(math.NaN())}, 40*40)
	gemm(false, false, 40, 40, 40, make([]float32, 1600), make([]float32, 1600), 0, c)
	for _, v := range c {
		if v != 0 {
			t.Fatalf("0 times 0 gave %v", v)
		}
	}
}

func TestProcessorsChangeNoBit(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	const m, n, k = 331, 203, 401
	a, b := random(rng, m*k), random(rng, k*n)
	var first []float32
	for procs := 1; procs <= 5; procs++ {
		old := runtime.GOMAXPROCS(procs)
		c := make([]float32, m*n)
		gemm(false, false, m, n, k, a, b, 0, c)
		runtime.GOMAXPROCS(old)
		if first == nil {
			first = c
		}
		if !slices.Equal(c, first) {
			t.Fatalf("%d processors give a result that differs from that of one", procs)
		}
	}
}

// The bits of a product with a tiny b do not depend on its address: Go aligns arrays of fewer than eight float32 to
// less than the 16 bytes that gonum's kernel for a bᵀ divides them by.
func TestAddressesChangeNoBit(t *testing.T) {
	for k := 2; k < 8; k++ {
		rng := rand.New(rand.NewPCG(1, uint64(k)))
		a, values := random(rng, 9*k), random(rng, k)
		var first [9]float32
		for offset := range 4 {
			b, c := slices.Concat(make([]float32, offset), values)[offset:], [9]float32{}
			gemm(false, true, 9, 1, k, a, b, 0, c[:])
			if offset == 0 {
				first = c
			}
			if c != first {
				t.Errorf("%d numbers, %d after the start of an array: %v, want %v", k, offset, c, first)
			}
		}
	}
}
