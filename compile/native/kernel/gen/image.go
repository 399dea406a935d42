// Kernels for images: blocks of rows, and maxima of windows of 2 by 2.

package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/operand"
)

func (m *machine) images() {
	m.copyBlocks()
	m.maxOfFour()
	m.maxOfFourGrad()
}

// copyBlocks writes dst[k,m,n] = a[k,m,n]. Rows of at most a vector have loops of their own.
func (m *machine) copyBlocks() {
	args, done := m.kernel("CopyBlocks"), m.label("end")
	for _, size := range []int{fieldM, fieldN, fieldK} {
		args.skipUnless(size, done)
	}
	dst, a, n := args.load(fieldDst), args.load(fieldA), args.load(fieldN)
	strides := []op{args.load(strideDst), args.load(strideA)}
	each := func(body func(to, from gp)) {
		blocks, loop := args.load(fieldK), m.label("blocks")
		m.Label(loop)
		to, from := m.copyGP(dst), m.copyGP(a)
		m.rows(args, []gp{to, from}, strides, func() { body(to, from) })
		m.ADDQ(args.at(blocksDst), dst)
		m.ADDQ(args.at(columnsA), a)
		m.DECQ(blocks)
		m.JNE(jump(loop))
		m.JMP(jump(done))
	}
	narrow, full := m.label("narrow"), m.label("full")
	m.CMPQ(n, operand.U8(uint8(m.lanes())))
	m.JLT(jump(narrow))
	m.JEQ(jump(full))
	s := m.row(n, m.lanes())
	each(func(to, from gp) {
		m.eachVector(s, func(p place) { m.store(m.load(p.of(from), p.tail), p.of(to), p.tail) })
	})
	m.Label(full)
	each(func(to, from gp) { m.store(m.load(mem(from, 0), nil), mem(to, 0), nil) })
	m.Label(narrow)
	t := m.newTail(n)
	if m.wide { // stores of half a vector cross fewer lines of the cache
		half, x := m.label("half"), m.YMM()
		m.CMPQ(n, operand.U8(8))
		m.JLE(jump(half))
		each(func(to, from gp) { m.store(m.load(mem(from, 0), t), mem(to, 0), t) })
		m.Label(half)
		each(func(to, from gp) {
			m.VMOVUPS_Z(mem(from, 0), t.k, x)
			m.VMOVUPS(x, t.k, mem(to, 0))
		})
	} else {
		each(func(to, from gp) { m.store(m.load(mem(from, 0), t), mem(to, 0), t) })
	}
	m.Label(done)
	m.end()
}

// integers returns constants in memory.
func (m *machine) integers(name string, value func(i int) uint32, count int) operand.Mem {
	at := m.StaticGlobal(name)
	m.DataAttributes(attr.RODATA | attr.NOPTR)
	for i := range count {
		m.AddDatum(elem*i, operand.U32(value(i)))
	}
	return at
}

// windows are the numbers of as many windows of 2 by 2 as a vector has lanes: left and right ones of both rows. Pairs
// of lanes are in another order than the windows, see reorder.
type windows struct {
	left, right [2]vec
	// chosen are the lanes whose right number is the maximum of a row, lower those whose maximum is in the second row.
	chosen [2]lanemask
	lower  lanemask
}

// quads is the loop over rows of windows.
type quads struct {
	*machine
	args      arguments
	a         gp // rows of windows
	below     gp // the second rows
	low, high *tail
}

// newQuads starts a kernel that reads windows.
func (m *machine) newQuads(name, done string) *quads {
	q := &quads{machine: m, args: m.kernel(name)}
	q.args.skipUnless(fieldM, done)
	q.args.skipUnless(fieldN, done)
	q.a, q.below = q.args.load(fieldA), m.GP64()
	return q
}

// tails makes the masks of the numbers of the last windows of a row, which fill up to two vectors.
func (q *quads) tails(s span) {
	low, high, lanes, none := q.copyGP(s.count), q.GP64(), q.GP64(), q.newIndex()
	q.ADDQ(low, low)
	q.MOVQ(operand.U32(uint32(q.lanes())), lanes)
	q.MOVQ(low, high)
	q.SUBQ(lanes, high)
	q.CMOVQLT(none, high)
	q.CMPQ(low, lanes)
	q.CMOVQGT(lanes, low)
	q.low, q.high = q.newTail(low), q.newTail(high)
}

// rows writes the loop over rows of windows.
func (q *quads) rows(pointers []gp, strides []op, body func()) {
	double := q.args.load(strideA)
	q.ADDQ(double, double)
	q.machine.rows(q.args, append(pointers, q.a), append(strides, double), func() {
		q.MOVQ(q.a, q.below)
		q.ADDQ(q.args.at(strideA), q.below)
		body()
	})
}

// pair returns the places of the two vectors with the numbers of one row of a vector of windows.
func (q *quads) pair(p place, row gp) [2]operand.Mem {
	at := operand.Mem{Base: row, Index: p.index, Scale: 2}
	return [2]operand.Mem{at, at.Offset(q.vectorBytes())}
}

// load reads a vector of windows and compares their numbers.
func (q *quads) load(p place) *windows {
	w := new(windows)
	var low, high *tail
	if p.tail != nil {
		low, high = q.low, q.high
	}
	var best [2]vec
	for i, row := range []gp{q.a, q.below} {
		at := q.pair(p, row)
		x, y := q.machine.load(at[0], low), q.machine.load(at[1], high)
		w.left[i], w.right[i] = q.everyOther(0, x, y), q.everyOther(1, x, y)
		w.chosen[i] = q.exceeds(w.right[i], w.left[i])
		best[i] = q.choose(w.chosen[i], w.right[i], w.left[i])
	}
	w.lower = q.exceeds(best[1], best[0])
	w.left[0] = q.choose(w.lower, best[1], best[0]) // the maximum
	return w
}

// everyOther returns every other lane of x and y, from the first or the second on. The pairs of lanes of x and y
// alternate.
func (m *machine) everyOther(first int, x, y vec) vec {
	d := m.vector()
	m.VSHUFPS(operand.U8(0x88+0x55*first), y, x, d)
	return d
}

// exceeds returns the lanes where y, which comes after x, is the maximum of both: it is larger, or the only NaN.
func (m *machine) exceeds(y, x vec) lanemask {
	above := m.compare(notLessSame, y, x)
	if m.wide {
		k := m.K()
		m.VCMPPS(operand.U8(ordered), x, x, above.k, k)
		return lanemask{k: k}
	}
	m.VANDPS(m.compare(ordered, x, x).y, above.y, above.y)
	return above
}

// then writes what a kernel does only if the call asks for it.
func (q *quads) then(body func()) {
	plain := q.label("plain")
	q.CMPQ(q.args.at(fieldThen), operand.U8(0))
	q.JEQ(jump(plain))
	body()
	q.Label(plain)
}

// reorder moves the pairs of lanes of a vector: from the order of windows in memory to that of loaded windows, or back.
func (m *machine) reorder(x vec, back bool) vec {
	if m.neon { // a vector has only two pairs, which are in the same order
		return x
	}
	d := m.vector()
	if !m.wide {
		m.VPERMPD(operand.U8(0xd8), x, d)
		return d
	}
	m.VPERMPD(x, m.copyOf(m.pairOrder(back)), d)
	return d
}

// pairOrder returns the order of pairs for AVX-512.
func (m *machine) pairOrder(back bool) operand.Mem {
	if m.orders == nil {
		m.orders = map[bool]operand.Mem{}
	}
	at, there := m.orders[back]
	if !there {
		at = m.integers(fmt.Sprintf("pairs_%v", back), func(i int) uint32 {
			switch from := uint32(i) / 2; {
			case i%2 == 1:
				return 0 // the upper half of a number of 64 bits
			case back:
				return from%4*2 + from/4
			default:
				return from%2*4 + from/2
			}
		}, 16)
		m.orders[back] = at
	}
	return at
}

// maxOfFour writes the maximum of each window, or its ReLU.
func (m *machine) maxOfFour() {
	done := m.label("end")
	q := m.newQuads("MaxOfFour", done)
	dst, s := q.args.load(fieldDst), m.row(q.args.load(fieldN), m.lanes())
	q.tails(s)
	q.rows([]gp{dst}, []op{q.args.at(strideDst)}, func() {
		m.eachVector(s, func(p place) {
			x := m.reorder(q.load(p).left[0], true)
			q.then(func() { m.VMOVUPS(m.relu(x), x) })
			m.store(x, p.of(dst), p.tail)
		})
	})
	m.Label(done)
	m.end()
}

// maxOfFourGrad writes b, or its product with the mask of the ReLU, at the first maximum of each window, and 0 at the
// other places.
func (m *machine) maxOfFourGrad() {
	done := m.label("end")
	q := m.newQuads("MaxOfFourGrad", done)
	dst, b, s := q.args.load(fieldDst), q.args.load(fieldB), m.row(q.args.load(fieldN), m.lanes())
	q.tails(s)
	double := q.args.load(strideDst)
	m.ADDQ(double, double)
	q.rows([]gp{dst, b}, []op{double, q.args.at(strideB)}, func() {
		m.eachVector(s, func(p place) {
			w := q.load(p)
			gradient := m.reorder(m.load(p.of(b), p.tail), false)
			q.then(func() {
				zero := m.vector()
				m.zero(zero)
				m.VMULPS(m.greater(w.left[0], zero), gradient, gradient)
			})
			second := m.keep(w.lower, gradient)
			first := m.xorOf(gradient, second)
			q.storeRow(p, dst, first, w.chosen[0])
			below := m.copyGP(dst)
			m.ADDQ(q.args.at(strideDst), below)
			q.storeRow(p, below, second, w.chosen[1])
		})
	})
	m.Label(done)
	m.end()
}

func (m *machine) xorOf(x, y vec) vec {
	d := m.vector()
	m.VXORPS(x, y, d)
	return d
}

// storeRow writes a row of windows, with the gradient at the right number of the chosen lanes and the left one of
// others.
func (q *quads) storeRow(p place, row gp, gradient vec, chosen lanemask) {
	right := q.keep(chosen, gradient)
	left := q.xorOf(gradient, right)
	x, y, at := q.vector(), q.vector(), q.pair(p, row)
	q.VUNPCKLPS(right, left, x)
	q.VUNPCKHPS(right, left, y)
	switch {
	case p.tail == nil:
		q.store(x, at[0], nil)
		q.store(y, at[1], nil)
	case q.wide || q.neon:
		q.store(x, at[0], q.low)
		q.store(y, at[1], q.high)
	default: // stores of pieces need fewer than 8 numbers
		part, stored := q.label("part"), q.label("stored")
		q.CMPQ(q.low.count, operand.U8(8))
		q.JLT(jump(part))
		q.store(x, at[0], nil)
		q.store(y, at[1], q.high)
		q.JMP(jump(stored))
		q.Label(part)
		q.store(x, at[0], q.low)
		q.Label(stored)
	}
}
