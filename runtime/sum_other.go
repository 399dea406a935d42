//go:build !amd64

// The sum that finds values that are not finite, for processors without an assembler version.

package runtime

// sum adds whole blocks, in any order.
func sum(x []float32) (s float32) {
	for ; len(x) >= block; x = x[block:] {
		v := (*[block]float32)(x)
		a := ((v[0] + v[1]) + (v[2] + v[3])) + ((v[4] + v[5]) + (v[6] + v[7]))
		b := ((v[8] + v[9]) + (v[10] + v[11])) + ((v[12] + v[13]) + (v[14] + v[15]))
		s += a + b
	}
	return s
}
