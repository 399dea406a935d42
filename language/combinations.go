// All combinations of the values of several settings.

package language

import "slices"

// CountCombinations returns the number of choices of one value from each axis, or
// limit+1 if there are more than limit.
func CountCombinations[T any](axes [][]T, limit int) int {
	n := 1
	for _, axis := range axes {
		if len(axis) > 0 && n > limit/len(axis) {
			return limit + 1
		}
		n *= len(axis)
	}
	return n
}

// Combinations returns all choices of one value from each axis; the last axis varies
// fastest. Without axes the result is one empty choice. Callers bound the number with
// CountCombinations first.
func Combinations[T any](axes [][]T) [][]T {
	list := [][]T{nil}
	for _, axis := range axes {
		var next [][]T
		for _, begun := range list {
			for _, v := range axis {
				next = append(next, append(slices.Clip(begun), v))
			}
		}
		list = next
	}
	return list
}
