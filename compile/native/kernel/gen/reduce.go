// Kernels that combine numbers of a row or of a column.

package main

import (
	"math"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

func (m *machine) reductions() {
	m.sumRows("SumRows", false)
	m.columns("SumCols", 0, func(total, x vec) { m.VADDPS(x, total, total) })
	m.columns("MaxCols", math.Inf(-1), func(total, x vec) { m.VMOVUPS(m.maximum(total, x), total) })
	m.sumRows("Gemv", true)
	m.softmax("Softmax", false)
	m.softmax("LogSoftmax", true)
}

// accumulators returns the vectors of 16 lanes, the unit of each sum over a row.
func (m *machine) accumulators(init func(v vec)) []vec {
	total := make([]vec, m.parts())
	for i := range total {
		total[i] = m.vector()
		init(total[i])
	}
	return total
}

// combine joins the lanes l and l+8, l and l+4, l and l+2, and the last two, and returns all lanes of the result.
func (m *machine) combine(total []vec, f func(...op)) vec {
	high, x := m.XMM(), m.XMM()
	if m.neon {
		f(total[2], total[0], x)
		f(total[3], total[1], high)
		f(high, x, x)
	} else {
		y := m.YMM()
		if m.wide {
			m.VEXTRACTF64X4(operand.U8(1), total[0], y)
			f(y, total[0].AsY(), y)
		} else {
			f(total[1], total[0], y)
		}
		m.VEXTRACTF128(operand.U8(1), y, high)
		f(high, y.AsX(), x)
	}
	m.VSHUFPS(operand.U8(0x0e), x, x, high)
	f(high, x, x)
	m.VSHUFPS(operand.U8(0x01), x, x, high)
	f(high, x, x)
	return x
}

// everywhere returns a vector of the first lane of x.
func (m *machine) everywhere(x vec) vec {
	v := m.vector()
	m.VBROADCASTSS(x.AsX(), v)
	return v
}

// sumRows writes dst[m] = sum over n of a[m,n]; as a product, of a[m,n] b[n], plus c[0].
func (m *machine) sumRows(name string, product bool) {
	args, done := m.kernel(name), m.label("end")
	args.skipUnless(fieldM, done)
	dst, a := args.load(fieldDst), args.load(fieldA)
	s := m.row(args.load(fieldN), 16)
	var b gp
	initial := m.XMM()
	if product {
		b = args.load(fieldB)
		c, none := args.load(fieldC), m.label("none")
		m.VXORPS(initial, initial, initial)
		m.TESTQ(c, c)
		m.JEQ(jump(none))
		m.VMOVSS(mem(c, 0), initial)
		m.Label(none)
	}
	several := func(rows int) {
		a := append([]gp{a}, make([]gp, rows-1)...)
		for i := range a[1:] {
			a[i+1] = m.copyGP(a[i])
			m.ADDQ(args.at(strideA), a[i+1])
		}
		total := make([][]vec, rows)
		for i := range total {
			total[i] = m.accumulators(func(v vec) { m.zero(v) })
		}
		m.each16(s, func(part int, p place) {
			var y vec
			if product {
				y = m.load(p.of(b), p.tail)
			}
			for i := range a {
				if x := m.load(p.of(a[i]), p.tail); product {
					m.VFMADD231PS(x, y, total[i][part])
				} else {
					m.VADDPS(x, total[i][part], total[i][part])
				}
			}
		})
		for i := range total {
			sum := m.combine(total[i], m.VADDPS)
			if product {
				m.VADDSS(sum, initial, sum)
			}
			m.VMOVSS(sum, mem(dst, i*elem))
		}
	}
	left, alone := args.load(fieldM), m.label("alone")
	if product {
		m.CMPQ(args.at(fieldN), operand.U32(shortRow))
		m.JGT(jump(alone))
		m.together(left, rowsTogether, []gp{dst, a}, []op{operand.U8(elem), args.at(strideA)}, func() {
			several(rowsTogether)
		})
		m.TESTQ(left, left)
		m.JEQ(jump(done))
		m.Label(alone)
	}
	m.together(left, 1, []gp{dst, a}, []op{operand.U8(elem), args.at(strideA)}, func() { several(1) })
	m.Label(done)
	m.end()
}

// rowsTogether is the number of rows of at most shortRow numbers that share each vector of the other factor. Processors
// read several long rows from memory at once more slowly than one after the other.
const (
	rowsTogether = 4
	shortRow     = 128
)

// columns writes a kernel that combines the rows of a matrix one after the other. It computes up to 4 vectors of
// columns at once, because each sum waits for the one before.
func (m *machine) columns(name string, initial float64, f func(total, x vec)) {
	const most = 4
	args := m.kernel(name)
	dst, a := args.load(fieldDst), args.load(fieldA)
	rows, stride, n := args.load(fieldM), args.load(strideA), args.load(fieldN)
	block := func(vectors int, t *tail) {
		totals := make([]vec, vectors)
		for i := range totals {
			totals[i] = m.number(initial)
		}
		at, left := m.GP64(), m.GP64()
		m.MOVQ(a, at)
		m.MOVQ(rows, left)
		loop, out := m.label("row"), m.label("out")
		m.TESTQ(left, left)
		m.JLE(jump(out))
		m.Label(loop)
		for i, total := range totals {
			f(total, m.load(mem(at, i*m.vectorBytes()), t))
		}
		m.ADDQ(stride, at)
		m.DECQ(left)
		m.JNE(jump(loop))
		m.Label(out)
		for i, total := range totals {
			m.store(total, mem(dst, i*m.vectorBytes()), t)
		}
	}
	for _, vectors := range []int{most, 1} {
		width := operand.U8(uint8(vectors * m.lanes()))
		loop, next := m.label("columns"), m.label("next")
		m.Label(loop)
		m.CMPQ(n, width)
		m.JLT(jump(next))
		block(vectors, nil)
		m.advance(vectors, dst, a)
		m.SUBQ(width, n)
		m.JMP(jump(loop))
		m.Label(next)
	}
	done := m.label("end")
	m.TESTQ(n, n)
	m.JLE(jump(done))
	block(1, m.newTail(n))
	m.Label(done)
	m.end()
}

// advance moves pointers on by whole vectors.
func (m *machine) advance(vectors int, pointers ...gp) {
	for _, p := range pointers {
		m.ADDQ(operand.U32(uint32(vectors*m.vectorBytes())), p)
	}
}

// softmax writes exp(x - top) / sum for each row, or x - top - log(sum). In the last vector the lanes outside of the
// row count as -Inf for the maximum and as 0 for the sum.
func (m *machine) softmax(name string, logarithm bool) {
	args, done := m.kernel(name), m.label("end")
	args.skipUnless(fieldM, done)
	args.skipUnless(fieldN, done)
	dst, a := args.load(fieldDst), args.load(fieldA)
	s := m.row(args.load(fieldN), 16)
	m.rows(args, []gp{dst, a}, []op{args.at(strideDst), args.at(strideA)}, func() {
		top := m.everywhere(m.rowMaximum(s, a))
		total := m.accumulators(func(v vec) { m.zero(v) })
		m.each16(s, func(part int, p place) {
			x := m.load(p.of(a), p.tail)
			m.VSUBPS(top, x, x)
			x = m.exp(x)
			counted := x
			if p.tail != nil {
				counted = m.keep(m.mask(p.tail), x)
			}
			m.VADDPS(counted, total[part], total[part])
			if !logarithm {
				m.store(x, p.of(dst), p.tail)
			}
		})
		sum := m.everywhere(m.combine(total, m.VADDPS))
		if logarithm {
			sum = m.log(sum)
		}
		m.each16(s, func(_ int, p place) {
			var x vec
			if logarithm {
				x = m.load(p.of(a), p.tail)
				m.VSUBPS(top, x, x)
				m.VSUBPS(sum, x, x)
			} else {
				x = m.load(p.of(dst), p.tail)
				m.VDIVPS(sum, x, x)
			}
			m.store(x, p.of(dst), p.tail)
		})
	})
	m.Label(done)
	m.end()
}

// rowMaximum returns the largest number of the row at a in its first lane. NaN may be lost: it reaches the results by
// the sum.
func (m *machine) rowMaximum(s span, a gp) reg.VecVirtual {
	lowest := m.number(math.Inf(-1))
	top := m.accumulators(func(v vec) { m.VMOVUPS(lowest, v) })
	m.each16(s, func(part int, p place) {
		x := m.load(p.of(a), p.tail)
		if p.tail != nil {
			x = m.choose(m.mask(p.tail), x, lowest)
		}
		m.VMAXPS(x, top[part], top[part])
	})
	return m.combine(top, m.VMAXPS)
}
