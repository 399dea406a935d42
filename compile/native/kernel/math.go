// Functions of one number, with the same operations in the same order as the vector forms. A conversion to float32
// keeps Go from fusing a product with a sum.

package kernel

import "math"

// fma returns x y + z with one rounding. The product of two float32 numbers is exact in float64. If the sum is not, the
// float64 neighbour with the odd last bit is taken: the rounding to float32 then is that of the exact sum.
func fma(x, y, z float32) float32 {
	product, c := float64(x)*float64(y), float64(z)
	sum := float64(product) + c
	part := sum - product
	lost := float64(product-float64(sum-part)) + float64(c-part) // NaN if the sum is not finite
	if lost > 0 || lost < 0 {
		if bits := math.Float64bits(sum); bits&1 == 0 {
			if (lost > 0) == (sum > 0) {
				bits++
			} else {
				bits--
			}
			sum = math.Float64frombits(bits)
		}
	}
	return float32(sum)
}

// poly returns a polynomial of x; its coefficients are given from the highest power to the constant.
func poly(x float32, coefficients ...float32) float32 {
	p := coefficients[0]
	for _, c := range coefficients[1:] {
		p = fma(p, x, c)
	}
	return p
}

func abs(x float32) float32 { return math.Float32frombits(math.Float32bits(x) &^ (1 << 31)) }

const (
	ln2High = 0.693359375 // few bits: products with small integers are exact
	ln2Low  = -2.12194440e-4
	shift   = 3 << 22 // adding it to a number rounds the number to an integer, in the last bits of the sum
)

// exp clamps x to where the result is 0 or infinite, writes it as n ln 2 + r, and scales exp(r) by 2^n in two steps, so
// that denormal results are rounded once.
func exp(x float32) float32 {
	if 89 < x {
		x = 89
	}
	if -104 > x {
		x = -104
	}
	n := fma(math.Log2E, x, shift)
	i := int32(math.Float32bits(n)) - int32(math.Float32bits(shift))
	n -= shift
	x = fma(-ln2High, n, x)
	x = fma(-ln2Low, n, x)
	p := poly(x, 1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1)
	p = float32(p * x)
	p = fma(p, x, x) + 1
	half := i >> 1
	p = float32(p * power(i-half))
	return float32(p * power(half))
}

// power returns 2 to the n.
func power(n int32) float32 { return math.Float32frombits(uint32(n+127) << 23) }

// log writes x as 2^e (1 + f) with f from sqrt(1/2) - 1 to sqrt(2) - 1, after denormal numbers were scaled.
func log(x float32) float32 {
	switch {
	case x < 0:
		return float32(math.NaN())
	case x == 0:
		return float32(math.Inf(-1))
	case !(x <= math.MaxFloat32):
		return x
	}
	var scaled float32
	if x < 0x1p-126 {
		x, scaled = float32(x*(1<<23)), -23
	}
	const sqrtHalf = 0x3f3504f3
	i := (int32(math.Float32bits(x)) - sqrtHalf) >> 23
	e := float32(i) + scaled
	f := math.Float32frombits(math.Float32bits(x)-uint32(i<<23)) - 1
	square := float32(f * f)
	p := poly(f, 7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1,
		-1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1)
	p = float32(p * square)
	p = float32(p * f)
	p = fma(ln2Low, e, p)
	p = fma(-0.5, square, p)
	p = float32(p + f)
	return fma(ln2High, e, p)
}

// tanh is x + x^3 P(x^2) below 0.55, and (1 - t) / (1 + t) with t = exp(-2 |x|) above.
func tanh(x float32) float32 {
	t := abs(x)
	if t < 0.55 {
		square := float32(x * x)
		p := poly(square, -0.00624142, 0.02105034, -0.05384763, 0.13332547, -0.33333316)
		return float32(math.Copysign(float64(fma(p, float32(square*x), x)), float64(x))) // -0 stays
	}
	e := exp(-t - t)
	return float32(math.Copysign(float64((1-e)/(1+e)), float64(x)))
}

// sigmoid divides exp(-|x|), or 1 if x is positive, by 1 + exp(-|x|), so small results keep all their digits.
func sigmoid(x float32) float32 {
	e := exp(-abs(x))
	if math.Signbit(float64(x)) {
		return e / (1 + e)
	}
	return 1 / (1 + e)
}

// softplus is max(x, 0) + log(1 + t), t = exp(-|x|) from 0 to 1. The polynomial is log(1 + t) / t. A function of t / (2
// + t) has fewer terms, but a division, and its square is a denormal number for many x, which is slow.
func softplus(x float32) float32 {
	top := x
	if 0 > x {
		top = 0
	}
	t := exp(-abs(x))
	p := poly(t, -0.00329107419, 0.0200884603, -0.0574604832, 0.106613711, -0.153449774, 0.196921214, -0.249580204,
		0.333304644, -0.499999315, 1)
	return fma(t, p, top)
}

// erf is x + x P(x^2) up to 475/512, and 1 - exp(P(|x|)) beyond, which is 1 from 4 on.
func erf(x float32) float32 {
	t := abs(x)
	if 4 < t {
		t = 4
	}
	square := float32(t * t)
	if t > 0.927734375 {
		p := fma(-1.72853470e-5, t, 3.83197126e-4)
		u := fma(-3.88396438e-3, t, 2.42546219e-2)
		p = poly(t, fma(p, square, u), -1.06777877e-1, -6.34846687e-1, -1.28717512e-1, -t)
		return float32(math.Copysign(float64(1-exp(p)), float64(x)))
	}
	p := poly(square, -5.96761703e-4, 4.99119423e-3, -2.67681349e-2, 1.12819925e-1, -3.76125336e-1, 1.28379166e-1)
	return fma(p, x, x)
}

func sign(x float32) float32 {
	switch {
	case x > 0:
		return 1
	case x < 0:
		return -1
	}
	return x // 0 or NaN
}

func relu(x float32) float32 {
	if x <= 0 {
		return 0
	}
	return x // also NaN
}

// maximum returns NaN if x or y is NaN, and 0 rather than -0.
func maximum(x, y float32) float32 { return max(x, y) }

func minimum(x, y float32) float32 { return min(x, y) }

func greater(x, y float32) float32 {
	if x > y {
		return 1
	}
	return 0
}

func greaterOrEqual(x, y float32) float32 {
	if x >= y {
		return 1
	}
	return 0
}
