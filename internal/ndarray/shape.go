// Package ndarray implements the arithmetic of row-major arrays: sizes, strides, and
// conversions between element types.
package ndarray

import "slices"

// Size returns the number of elements of an array: the product of its extents, 1 for a scalar.
func Size[E ~int | ~int64](extents []E) int {
	size := 1
	for _, e := range extents {
		size *= int(e)
	}
	return size
}

// SizeWithin is Size for extents from outside. ok is false if an extent is negative or
// the size exceeds limit.
func SizeWithin[E ~int | ~int64](extents []E, limit int) (size int, ok bool) {
	size = 1
	for _, e := range extents {
		if e < 0 || e > 0 && size > limit/int(e) {
			return 0, false
		}
		size *= int(e)
	}
	return size, true
}

// Transposed reports whether two shapes have the same extents in another order, without those of 1:
// an array of one must be transposed to be an array of the other.
func Transposed(a, b []int) bool {
	wide := func(shape []int) []int {
		return slices.DeleteFunc(slices.Clone(shape), func(e int) bool { return e == 1 })
	}
	a, b = wide(a), wide(b)
	return !slices.Equal(a, b) && slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// Strides returns the distance between neighbours along each axis, in elements.
func Strides(shape []int) []int {
	strides, step := make([]int, len(shape)), 1
	for i := len(shape) - 1; i >= 0; i-- {
		strides[i] = step
		step *= shape[i]
	}
	return strides
}

// BroadcastStrides returns the strides with which an array is read when it is broadcast to the shape out: aligned at
// the right, 0 along broadcast axes.
func BroadcastStrides(shape, out []int) []int {
	own, strides := Strides(shape), make([]int, len(out))
	for i, d := range shape {
		if d != 1 {
			strides[i+len(out)-len(shape)] = own[i]
		}
	}
	return strides
}

// ReducedStrides returns the strides of the reduction of an array over axes, one for
// each axis of the array: 0 along the reduced ones.
func ReducedStrides(shape, axes []int) []int {
	kept := append([]int(nil), shape...)
	for _, a := range axes {
		kept[a] = 1
	}
	return BroadcastStrides(kept, shape)
}

// Blocks splits an array at an axis. outer is the number of blocks before the axis, step the number of elements of one
// step along it.
func Blocks(shape []int, axis int) (outer, step int) {
	return Size(shape[:axis]), Size(shape[axis+1:])
}

// Cut copies a part of each wide block, starting at offset, to the narrow blocks. A value is a number of outer
// blocks, each of width elements: the size of an axis times that of all axes inside it.
func Cut[T any](narrow, wide []T, outer, width, wideWidth, offset int) {
	for o := range outer {
		copy(narrow[o*width:(o+1)*width], wide[o*wideWidth+offset:])
	}
}

// Paste is the inverse of Cut. It does not change the rest of wide.
func Paste[T any](wide, narrow []T, outer, width, wideWidth, offset int) {
	for o := range outer {
		copy(wide[o*wideWidth+offset:], narrow[o*width:(o+1)*width])
	}
}
