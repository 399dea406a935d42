// Products against their definition, with the same bits on any number of threads.

package native

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/miplc/miplc/compile/native/kernel"
)

func TestMultiply(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	sizes := [][3]int{{1, 1, 1}, {6, 16, 100}, {7, 17, 101}, {37, 13, 38}, {200, 7, 129}, {97, 513, 40}, {3, 600, 9},
		{300, 400, 100}, {2, 3, 0}}
	for _, s := range sizes {
		m, n, k := s[0], s[1], s[2]
		for _, ta := range []bool{false, true} {
			for _, tb := range []bool{false, true} {
				a, b := drawn(rng, m*k), drawn(rng, k*n)
				one, many := drawn(rng, m*n), make([]float32, m*n)
				Multiply(kernel.Best(), 1, ta, tb, m, n, k, a, b, one)
				Multiply(kernel.Best(), 3, ta, tb, m, n, k, a, b, many)
				if !slices.Equal(one, many) {
					t.Errorf("%v: three threads change the result", s)
				}
				for at, got := range one {
					want := 0.0
					for p := range k {
						x, y := at/n*k+p, p*n+at%n
						if ta {
							x = p*m + at/n
						}
						if tb {
							y = at%n*k + p
						}
						want += float64(a[x]) * float64(b[y])
					}
					if !(math.Abs(float64(got)-want) <= 1e-5*math.Sqrt(float64(k))+1e-5*math.Abs(want)) {
						t.Fatalf("%v, transposed %v and %v: element %d is %v, want %v", s, ta, tb, at, got, want)
					}
				}
			}
		}
	}
}

func drawn(rng *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(rng.NormFloat64())
	}
	return x
}
