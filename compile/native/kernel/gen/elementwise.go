// Kernels that compute each number by itself.

package main

// kernels writes all functions of the set.
func (m *machine) kernels() {
	m.unary("Copy", func(x vec) vec { return x })
	m.unary("Neg", m.negate)
	m.unary("Exp", m.exp)
	m.unary("Log", m.log)
	m.unary("Sqrt", m.sqrt)
	m.unary("Abs", m.abs)
	m.unary("Sign", m.sign)
	m.unary("Tanh", m.tanh)
	m.unary("Sigmoid", m.sigmoid)
	m.unary("Softplus", m.softplus)
	m.unary("Relu", m.relu)
	m.unary("Erf", m.erf)
	m.clamp()
	m.binary("Add", m.instruction(m.VADDPS))
	m.binary("Sub", m.instruction(m.VSUBPS))
	m.binary("Mul", m.instruction(m.VMULPS))
	m.binary("Div", m.instruction(m.VDIVPS))
	m.binary("Max", m.maximum)
	m.binary("Min", m.minimum)
	m.binary("Greater", m.greater)
	m.binary("GreaterOrEqual", m.greaterOrEqual)
	m.scaled("ScaledAdd", m.VFMADD213PS)
	m.scaled("ScaledSub", m.VFNMADD213PS)
	m.mulGreater()
	m.reductions()
	m.matrices()
}

// unary writes dst[i] = f(a[i]).
func (m *machine) unary(name string, f func(x vec) vec) {
	args := m.kernel(name)
	dst, a := args.load(fieldDst), args.load(fieldA)
	m.eachVector(m.row(args.load(fieldN), m.lanes()), func(p place) {
		m.store(f(m.load(p.of(a), p.tail)), p.of(dst), p.tail)
	})
	m.end()
}

// scalar returns a vector of the number at p.
func (m *machine) scalar(p gp) vec {
	v := m.vector()
	m.VBROADCASTSS(mem(p, 0), v)
	return v
}

func (m *machine) clamp() {
	args, done := m.kernel("Clamp"), m.label("end")
	args.skipUnless(fieldN, done)
	dst, a := args.load(fieldDst), args.load(fieldA)
	low, high := m.scalar(args.load(fieldB)), m.scalar(args.load(fieldC))
	m.eachVector(m.row(args.load(fieldN), m.lanes()), func(p place) {
		m.store(m.limit(m.load(p.of(a), p.tail), low, high), p.of(dst), p.tail)
	})
	m.Label(done)
	m.end()
}

// scaled writes dst = b + c a, or b - c a.
func (m *machine) scaled(name string, f func(...op)) {
	args, done := m.kernel(name), m.label("end")
	args.skipUnless(fieldN, done)
	dst, a, b, c := args.load(fieldDst), args.load(fieldA), args.load(fieldB), m.scalar(args.load(fieldC))
	m.eachVector(m.row(args.load(fieldN), m.lanes()), func(p place) {
		x := m.load(p.of(a), p.tail)
		f(m.load(p.of(b), p.tail), c, x)
		m.store(x, p.of(dst), p.tail)
	})
	m.Label(done)
	m.end()
}

// mulGreater writes dst = a times 1 where b > c, else times 0.
func (m *machine) mulGreater() {
	args, done := m.kernel("MulGreater"), m.label("end")
	args.skipUnless(fieldN, done)
	dst, a, b, c := args.load(fieldDst), args.load(fieldA), args.load(fieldB), m.scalar(args.load(fieldC))
	m.eachVector(m.row(args.load(fieldN), m.lanes()), func(p place) {
		x, factor := m.load(p.of(a), p.tail), m.greater(m.load(p.of(b), p.tail), c)
		m.VMULPS(factor, x, x)
		m.store(x, p.of(dst), p.tail)
	})
	m.Label(done)
	m.end()
}

// instruction returns the function of an instruction whose operands are y, x and the result.
func (m *machine) instruction(f func(...op)) func(x, y vec) vec {
	return func(x, y vec) vec {
		d := m.vector()
		f(y, x, d)
		return d
	}
}

// binary writes the three kernels of a function of two numbers.
func (m *machine) binary(name string, f func(x, y vec) vec) {
	for _, form := range []string{"VV", "VS", "SV"} {
		m.pairs(name+form, form[0] == 'V', form[1] == 'V', f)
	}
}

// pairs writes dst[m,n] = f(a, b). An operand that is not a row is one number for each row.
func (m *machine) pairs(name string, rowA, rowB bool, f func(x, y vec) vec) {
	args, done := m.kernel(name), m.label("end")
	args.skipUnless(fieldM, done)
	args.skipUnless(fieldN, done)
	dst, a, b := args.load(fieldDst), args.load(fieldA), args.load(fieldB)
	s := m.row(args.load(fieldN), m.lanes())
	strides := []op{args.at(strideDst), args.at(strideA), args.at(strideB)}
	m.rows(args, []gp{dst, a, b}, strides, func() {
		var x, y vec
		if !rowA {
			x = m.scalar(a)
		}
		if !rowB {
			y = m.scalar(b)
		}
		m.eachVector(s, func(p place) {
			if rowA {
				x = m.load(p.of(a), p.tail)
			}
			if rowB {
				y = m.load(p.of(b), p.tail)
			}
			m.store(f(x, y), p.of(dst), p.tail)
		})
	})
	m.Label(done)
	m.end()
}
