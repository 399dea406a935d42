// Sizes and strides.

package ndarray

import (
	"math"
	"slices"
	"testing"
)

func TestSize(t *testing.T) {
	for want, extents := range map[int][]int{1: nil, 7: {7}, 24: {2, 3, 4}, 0: {5, 0, 9}} {
		if got := Size(extents); got != want {
			t.Errorf("%v: %d, want %d", extents, got, want)
		}
		if got, ok := SizeWithin(extents, 24); got != want || !ok {
			t.Errorf("%v: %d, %v, want %d", extents, got, ok, want)
		}
	}
	for _, extents := range [][]int64{{2, 3, 5}, {-1}, {-2, -3}, {math.MaxInt64, 3}, {1 << 32, 1 << 32}, {25}} {
		if got, ok := SizeWithin(extents, 24); ok {
			t.Errorf("%v: %d is reported as at most 24", extents, got)
		}
	}
}

func TestTransposed(t *testing.T) {
	for _, c := range []struct {
		a, b []int
		want bool
	}{
		{[]int{28, 28, 3}, []int{3, 28, 28}, true},
		{[]int{2, 3}, []int{3, 2}, true},
		{[]int{28, 28}, []int{1, 28, 28}, false},
		{[]int{28, 28, 1}, []int{1, 28, 28}, false},
		{[]int{2352}, []int{3, 28, 28}, false},
		{[]int{4, 9}, []int{6, 6}, false},
	} {
		if got := Transposed(c.a, c.b); got != c.want {
			t.Errorf("%v and %v: %v", c.a, c.b, got)
		}
	}
}

func TestStrides(t *testing.T) {
	for _, c := range []struct {
		what      string
		got, want []int
	}{
		{"of an array", Strides([]int{2, 3, 4}), []int{12, 4, 1}},
		{"of a scalar", Strides(nil), []int{}},
		{"of a row that is stretched", BroadcastStrides([]int{3}, []int{2, 3}), []int{0, 1}},
		{"of a column that is stretched", BroadcastStrides([]int{2, 1}, []int{4, 2, 3}), []int{0, 1, 0}},
		{"of sums over two axes", ReducedStrides([]int{2, 3, 4}, []int{0, 2}), []int{0, 1, 0}},
		{"of a sum over one axis", ReducedStrides([]int{2, 3, 4}, []int{1}), []int{4, 0, 1}},
	} {
		if !slices.Equal(c.got, c.want) {
			t.Errorf("%s: %v, want %v", c.what, c.got, c.want)
		}
	}
	if outer, step := Blocks([]int{2, 3, 4, 5}, 1); outer != 2 || step != 20 {
		t.Errorf("%d blocks of steps of %d elements, want 2 and 20", outer, step)
	}
}
