// The exponential function in float32.

package gorgonia

import "math"

// exp returns e^x as exactly as T needs it: math.Exp for float64; for float32 a polynomial with a
// relative error below 1e-9, which is twice as fast.
func exp[T Float](x float64) float64 {
	if dtypeIsWide[T]() {
		return math.Exp(x)
	}
	return exp32(x)
}

func dtypeIsWide[T Float]() bool {
	const third = 1.0 / 3
	return float64(T(third)) == third
}

// exp32 computes e^x = 2^n e^r with |r| <= log(2)/2, and e^r by a Taylor polynomial.
func exp32(x float64) float64 {
	if !(x > -700 && x < 700) { // also NaN
		return math.Exp(x)
	}
	n := math.Floor(x*math.Log2E + 0.5)
	r := x - n*math.Ln2
	p := 1 + r*(1+r*(1.0/2+r*(1.0/6+r*(1.0/24+r*(1.0/120+r*(1.0/720+r*(1.0/5040+r*(1.0/40320))))))))
	return p * math.Float64frombits(uint64(int64(n)+1023)<<52)
}

// passPositive writes dy where x is positive or NaN, else 0. It has no branches, because signs are
// unpredictable and mispredictions cost more than the rest of the loop.
func passPositive(dx, x, dy []float32) {
	x, dy = x[:len(dx)], dy[:len(dx)]
	for i := range dx {
		v := math.Float32bits(dy[i])
		if x[i] <= 0 {
			v = 0
		}
		dx[i] = math.Float32frombits(v)
	}
}
