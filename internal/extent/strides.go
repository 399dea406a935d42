package extent

// Strides gives the distance between neighbours along each axis.
func Strides(shape []int) []int {
	strides, step := make([]int, len(shape)), 1
	for i := len(shape) - 1; i >= 0; i-- {
		strides[i] = step
		step *= shape[i]
	}
	return strides
}

// Stretched gives the strides by which an array is read when it is broadcast to the
// extents out: aligned at the right, 0 along stretched axes.
func Stretched(shape, out []int) []int {
	own, strides := Strides(shape), make([]int, len(out))
	for i, d := range shape {
		if d != 1 {
			strides[i+len(out)-len(shape)] = own[i]
		}
	}
	return strides
}

// Reduced gives the strides, along the axes of an array, of its reduction over some of
// them: 0 along those.
func Reduced(shape, axes []int) []int {
	kept := append([]int(nil), shape...)
	for _, a := range axes {
		kept[a] = 1
	}
	return Stretched(kept, shape)
}

// Blocks splits an array at an axis: how many blocks there are outside of it, and the
// elements of one step along it.
func Blocks(shape []int, axis int) (outer, step int) {
	return Size(shape[:axis]), Size(shape[axis+1:])
}
