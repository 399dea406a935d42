// Functions of one number on vectors. Each has the operations of the function of its name in math.go of the kernels, in
// the same order.

package main

import (
	"math"

	"github.com/mmcloughlin/avo/operand"
)

const (
	signBit = 1 << 31
	ln2High = 0.693359375
	ln2Low  = -2.12194440e-4
	shift   = 3 << 22
)

func (m *machine) add(c float64, x, d vec)   { m.constant(m.VADDPS, m.VADDPS_BCST, bitsOf(c), x, d) }
func (m *machine) sub(c float64, x, d vec)   { m.constant(m.VSUBPS, m.VSUBPS_BCST, bitsOf(c), x, d) }
func (m *machine) mul(c float64, x, d vec)   { m.constant(m.VMULPS, m.VMULPS_BCST, bitsOf(c), x, d) }
func (m *machine) addInt(c uint32, x, d vec) { m.constant(m.VPADDD, m.VPADDD_BCST, c, x, d) }
func (m *machine) subInt(c uint32, x, d vec) { m.constant(m.VPSUBD, m.VPSUBD_BCST, c, x, d) }
func (m *machine) and(bits uint32, x, d vec) { m.constant(m.VANDPS, m.VPANDD_BCST, bits, x, d) }
func (m *machine) or(bits uint32, x, d vec)  { m.constant(m.VORPS, m.VPORD_BCST, bits, x, d) }
func (m *machine) xor(bits uint32, x, d vec) { m.constant(m.VXORPS, m.VPXORD_BCST, bits, x, d) }
func (m *machine) addProduct(c float64, x, d vec) { // d + c x
	m.constant(m.VFMADD231PS, m.VFMADD231PS_BCST, bitsOf(c), x, d)
}
func (m *machine) subProduct(c float64, x, d vec) { // d - c x
	m.constant(m.VFNMADD231PS, m.VFNMADD231PS_BCST, bitsOf(c), x, d)
}
func (m *machine) horner(c float64, x, d vec) { // d x + c
	m.constant(m.VFMADD213PS, m.VFMADD213PS_BCST, bitsOf(c), x, d)
}

// poly returns a polynomial of x; its coefficients are given from the highest power to the constant.
func (m *machine) poly(x vec, coefficients ...float64) vec {
	return m.continuePoly(m.number(coefficients[0]), x, coefficients[1:]...)
}

// continuePoly returns the polynomial p of x with more coefficients. It changes p.
func (m *machine) continuePoly(p, x vec, coefficients ...float64) vec {
	for _, c := range coefficients {
		if m.neon { // its products with one rounding add to a register
			sum := m.number(c)
			m.VFMADD231PS(x, p, sum)
			p = sum
			continue
		}
		m.horner(c, x, p)
	}
	return p
}

// abs returns |x|.
func (m *machine) abs(x vec) vec {
	d := m.vector()
	m.and(signBit-1, x, d)
	return d
}

// negativeAbs returns -|x|.
func (m *machine) negativeAbs(x vec) vec {
	d := m.vector()
	m.or(signBit, x, d)
	return d
}

// limit returns x limited to [low, high]. NaN stays, because these instructions return their second operand then.
func (m *machine) limit(x, low, high vec) vec {
	d := m.vector()
	m.VMINPS(x, high, d)
	m.VMAXPS(d, low, d)
	return d
}

func (m *machine) exp(x vec) vec {
	x = m.limit(x, m.number(-104), m.number(89))
	n := m.number(shift)
	m.addProduct(math.Log2E, x, n)
	i := m.vector()
	if !m.wide {
		m.subInt(bitsOf(shift), n, i)
	}
	m.sub(shift, n, n)
	m.subProduct(ln2High, n, x)
	m.subProduct(ln2Low, n, x)
	p := m.poly(x, 1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1)
	m.VMULPS(x, p, p)
	m.VFMADD213PS(x, x, p) // p x + x
	m.add(1, p, p)
	if m.wide {
		m.VSCALEFPS(n, p, p)
		return p
	}
	half := m.vector()
	m.VPSRAD(operand.U8(1), i, half)
	m.VPSUBD(half, i, i)
	for _, power := range []vec{i, half} {
		m.addInt(127, power, power)
		m.VPSLLD(operand.U8(23), power, power)
		m.VMULPS(power, p, p)
	}
	return p
}

func (m *machine) log(x vec) vec {
	small := m.compareNumber(less, x, 0x1p-126)
	y := m.vector()
	m.mul(1<<23, x, y)
	y = m.choose(small, y, x)
	scaled := m.keep(small, m.number(-23))
	const sqrtHalf = 0x3f3504f3
	i, f := m.vector(), m.vector()
	m.subInt(sqrtHalf, y, i)
	m.VPSRAD(operand.U8(23), i, i)
	m.VPSLLD(operand.U8(23), i, f)
	m.VPSUBD(f, y, f)
	m.sub(1, f, f)
	e, square := m.vector(), m.vector()
	m.VCVTDQ2PS(i, e)
	m.VADDPS(scaled, e, e)
	m.VMULPS(f, f, square)
	p := m.poly(f, 7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1,
		-1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1)
	m.VMULPS(square, p, p)
	m.VMULPS(f, p, p)
	m.addProduct(ln2Low, e, p)
	m.subProduct(0.5, square, p)
	m.VADDPS(f, p, p)
	m.addProduct(ln2High, e, p)
	p = m.choose(m.compareNumber(notLessSame, x, math.MaxFloat32), x, p)
	p = m.choose(m.compareNumber(equal, x, 0), m.number(math.Inf(-1)), p)
	return m.choose(m.compareNumber(less, x, 0), m.number(math.NaN()), p)
}

func (m *machine) tanh(x vec) vec {
	double := m.negativeAbs(x)
	m.VADDPS(double, double, double)
	e := m.exp(double)
	large, below, sign := m.vector(), m.vector(), m.vector()
	m.add(1, e, below)
	m.VSUBPS(e, m.number(1), large)
	m.VDIVPS(below, large, large)
	m.and(signBit, x, sign)
	square, cube := m.vector(), m.vector()
	m.VMULPS(x, x, square)
	p := m.poly(square, -0.00624142, 0.02105034, -0.05384763, 0.13332547, -0.33333316)
	m.VMULPS(square, x, cube)
	m.VFMADD213PS(x, cube, p) // p cube + x
	d := m.choose(m.compareNumber(less, m.abs(x), 0.55), p, large)
	m.VORPS(sign, d, d)
	return d
}

func (m *machine) sigmoid(x vec) vec {
	e := m.exp(m.negativeAbs(x))
	d := m.vector()
	m.add(1, e, d)
	e = m.choose(m.negative(x), e, m.number(1))
	m.VDIVPS(d, e, e)
	return e
}

func (m *machine) softplus(x vec) vec {
	t := m.exp(m.negativeAbs(x))
	p := m.poly(t, -0.00329107419, 0.0200884603, -0.0574604832, 0.106613711, -0.153449774, 0.196921214, -0.249580204,
		0.333304644, -0.499999315, 1)
	top := m.vector()
	m.zero(top)
	m.VMAXPS(x, top, top) // x if it is NaN
	m.VFMADD213PS(top, t, p)
	return p
}

func (m *machine) erf(x vec) vec {
	t, square := m.abs(x), m.vector()
	m.VMINPS(t, m.number(4), t) // NaN stays
	m.VMULPS(t, t, square)
	p := m.number(3.83197126e-4)
	m.addProduct(-1.72853470e-5, t, p)
	u := m.number(2.42546219e-2)
	m.addProduct(-3.88396438e-3, t, u)
	m.VFMADD213PS(u, square, p)
	p = m.continuePoly(p, t, -1.06777877e-1, -6.34846687e-1, -1.28717512e-1)
	m.VFMSUB213PS(t, t, p) // p t - t
	large := m.exp(p)
	one := m.number(1)
	m.VSUBPS(large, one, large)
	sign := m.vector()
	m.and(signBit, x, sign)
	m.VORPS(sign, large, large)
	p = m.poly(square, -5.96761703e-4, 4.99119423e-3, -2.67681349e-2, 1.12819925e-1, -3.76125336e-1, 1.28379166e-1)
	m.VFMADD213PS(x, x, p)
	return m.choose(m.compareNumber(more, t, 0.927734375), large, p)
}

func (m *machine) sign(x vec) vec {
	d := m.vector()
	m.and(signBit, x, d)
	m.or(bitsOf(1), d, d)
	return m.choose(m.compareNumber(notEqual, x, 0), d, x)
}

// relu returns NaN for NaN. VMAXPS returns its second operand if both are 0 or one is NaN; adding 0 makes 0 of -0.
func (m *machine) relu(x vec) vec {
	zero, d := m.vector(), m.vector()
	m.zero(zero)
	if m.neon {
		m.FMAX(x, zero, d)
		return d
	}
	m.VMAXPS(x, zero, d)
	m.VADDPS(zero, d, d)
	return d
}

func (m *machine) negate(x vec) vec {
	d := m.vector()
	m.xor(signBit, x, d)
	return d
}

func (m *machine) sqrt(x vec) vec {
	d := m.vector()
	m.VSQRTPS(x, d)
	return d
}

// maximum returns NaN if x or y is NaN, and 0 rather than -0. VMAXPS returns its second operand if both are 0 or one is
// NaN.
func (m *machine) maximum(x, y vec) vec {
	if m.neon {
		return m.instruction(m.FMAX)(x, y)
	}
	return m.extreme(m.VMAXPS, m.VANDPS, x, y)
}

func (m *machine) minimum(x, y vec) vec {
	if m.neon {
		return m.instruction(m.FMIN)(x, y)
	}
	return m.extreme(m.VMINPS, m.VORPS, x, y)
}

func (m *machine) extreme(f, join func(...operand.Op), x, y vec) vec {
	d, other := m.vector(), m.vector()
	f(y, x, d)
	f(x, y, other)
	join(other, d, d)
	nan := m.compare(unordered, x, y)
	if m.wide {
		m.VADDPS(y, x, nan.k, d)
	} else {
		m.VORPS(nan.y, d, d)
	}
	return d
}

func (m *machine) greater(x, y vec) vec { return m.keep(m.compare(more, x, y), m.number(1)) }

func (m *machine) greaterOrEqual(x, y vec) vec { return m.keep(m.compare(notLess, x, y), m.number(1)) }
