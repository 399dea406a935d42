// Package extent has the arithmetic of arrays: elements and strides, row-major.
package extent

// Size is the number of elements of an array of these extents: their product,
// and 1 of a scalar, which has none.
func Size[E ~int | ~int64](extents []E) int {
	size := 1
	for _, e := range extents {
		size *= int(e)
	}
	return size
}

// Within is Size where extents come from outside. It reports false where one is
// negative or the product is more than limit.
func Within[E ~int | ~int64](extents []E, limit int) (size int, ok bool) {
	size = 1
	for _, e := range extents {
		if e < 0 || e > 0 && size > limit/int(e) {
			return 0, false
		}
		size *= int(e)
	}
	return size, true
}
