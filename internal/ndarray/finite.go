// The search for numbers that are not finite, which every feature of every bag passes.

package ndarray

import "math"

// FirstNotFinite returns the index of the first NaN or infinity, or -1. It computes the sum first, which is not finite
// if a number is not.
func FirstNotFinite(x []float32) int {
	const block, exponent = 16, 0x7f800000 // all bits of the exponent set: NaN or infinity
	i, sum := 0, float32(0)
	for ; i+block <= len(x); i += block {
		v := (*[block]float32)(x[i:])
		a := ((v[0] + v[1]) + (v[2] + v[3])) + ((v[4] + v[5]) + (v[6] + v[7]))
		b := ((v[8] + v[9]) + (v[10] + v[11])) + ((v[12] + v[13]) + (v[14] + v[15]))
		sum += a + b
	}
	if sum-sum != 0 {
		i = 0 // the sum of large finite numbers may overflow too
	}
	for ; i < len(x); i++ {
		if math.Float32bits(x[i])&exponent == exponent {
			return i
		}
	}
	return -1
}
