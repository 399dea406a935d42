package extent

import (
	"math"
	"testing"
)

func TestSize(t *testing.T) {
	for want, extents := range map[int][]int{1: nil, 7: {7}, 24: {2, 3, 4}, 0: {5, 0, 9}} {
		if got := Size(extents); got != want {
			t.Errorf("%v: %d, want %d", extents, got, want)
		}
		if got, ok := Within(extents, 24); got != want || !ok {
			t.Errorf("%v: %d, %v, want %d", extents, got, ok, want)
		}
	}
	for _, extents := range [][]int64{{2, 3, 5}, {-1}, {-2, -3}, {math.MaxInt64, 3}, {1 << 32, 1 << 32}, {25}} {
		if got, ok := Within(extents, 24); ok {
			t.Errorf("%v: %d is within 24", extents, got)
		}
	}
}
