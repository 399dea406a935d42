// Numbers that are not finite are found at every position.

package ndarray

import (
	"math"
	"testing"
)

// The first value that is not finite is found at every index, also among numbers so large that
// their sum overflows.
func TestFirstNotFinite(t *testing.T) {
	inf := float32(math.Inf(1))
	for n := range 70 {
		for _, fill := range []float32{0, 1, -math.MaxFloat32, math.MaxFloat32} {
			x := make([]float32, n)
			for i := range x {
				x[i] = fill
			}
			if at := FirstNotFinite(x); at != -1 {
				t.Fatalf("%d times %v: place %d", n, fill, at)
			}
			for want := range x {
				for _, bad := range []float32{inf, -inf, float32(math.NaN())} {
					x[want], x[n-1] = bad, -bad
					if at := FirstNotFinite(x); at != want {
						t.Fatalf("%d times %v, %v at %d: found at %d", n, fill, bad, want, at)
					}
					x[want], x[n-1] = fill, fill
				}
			}
		}
	}
}
