// The kernel of random numbers: Philox4x32 on as many counters as a vector has lanes, see random.go of the kernels.

package main

import "github.com/mmcloughlin/avo/operand"

// Offsets in Random.
const (
	randomKey    = 0
	randomStream = 8
	randomBelow  = 20
	randomScale  = 24
	randomFirst  = 28
)

// rounds of Philox.
const rounds = 7

// dropout writes numbers that are 0 or a scale, 64 at a time. Fewer go through memory of the function.
func (m *machine) dropout() {
	args, done := m.kernel("Dropout"), m.label("end")
	args.skipUnless(fieldN, done)
	dst, a, left := args.load(fieldDst), args.load(fieldA), args.load(fieldN)
	block := m.copyOf(m.integers("blocks", func(i int) uint32 { return uint32(i) }, m.lanes()))
	m.VPADDD(m.spread(mem(a, randomFirst)), block, block)
	odds := m.odds()
	loop, part, buffer := m.label("loop"), m.label("part"), m.AllocLocal(64*elem)
	m.Label(loop)
	m.CMPQ(left, operand.U8(64))
	m.JLT(jump(part))
	m.group(a, block, odds, func(offset int, v vec) { m.store(v, mem(dst, offset), nil) })
	m.ADDQ(operand.U32(64*elem), dst)
	m.SUBQ(operand.U8(64), left)
	m.JMP(jump(loop))
	m.Label(part)
	m.TESTQ(left, left)
	m.JEQ(jump(done))
	m.group(a, block, odds, func(offset int, v vec) { m.store(v, buffer.Offset(offset), nil) })
	from := m.GP64()
	m.LEAQ(buffer, from)
	m.eachVector(m.row(left, m.lanes()), func(p place) { m.store(m.load(p.of(from), p.tail), p.of(dst), p.tail) })
	m.Label(done)
	m.end()
}

// group computes 64 numbers from 16 blocks, in two halves with AVX2, and moves the blocks on. write gets vectors with
// their places in bytes.
func (m *machine) group(a gp, block vec, odds lanemask, write func(offset int, v vec)) {
	for half := range m.parts() {
		counter := [4]vec{m.copyOf(block)}
		for i := range 3 {
			counter[i+1] = m.spread(mem(a, randomStream+elem*i))
		}
		key := [2]vec{m.spread(mem(a, randomKey)), m.spread(mem(a, randomKey+elem))}
		for round := range rounds {
			m.round(&counter, key, odds)
			if round < rounds-1 {
				m.addInt(0x9e3779b9, key[0], key[0])
				m.addInt(0xbb67ae85, key[1], key[1])
			}
		}
		scale, below := m.spread(mem(a, randomScale)), m.spread(mem(a, randomBelow))
		for word, x := range counter {
			write(elem*(16*word+m.lanes()*half), m.keep(m.notBelow(x, below), scale))
		}
		m.addInt(uint32(m.lanes()), block, block)
	}
}

// spread returns a vector of the number at a place.
func (m *machine) spread(at operand.Mem) vec {
	v := m.vector()
	m.VBROADCASTSS(at, v)
	return v
}

// round is a round of Philox.
func (m *machine) round(c *[4]vec, key [2]vec, odds lanemask) {
	low0, high0 := m.product64(c[0], 0xd2511f53, odds)
	low1, high1 := m.product64(c[2], 0xcd9e8d57, odds)
	for i, high := range []vec{high1, high0} {
		m.VXORPS(c[2*i+1], high, high)
		m.VXORPS(key[i], high, high)
	}
	*c = [4]vec{high1, low1, high0, low0}
}

// odds returns every other lane, from the second one on. AVX2 does not need the mask, because its blends have
// constants.
func (m *machine) odds() (odds lanemask) {
	if m.wide {
		bits := m.GP64()
		odds.k = m.K()
		m.MOVQ(operand.U32(0xaaaa), bits)
		m.KMOVW(bits.As32(), odds.k)
	}
	return odds
}

// product64 returns the low and the high words of the products of words with a constant. VPMULUDQ multiplies every
// other word, UMULL and UMULL2 the first and the last two.
func (m *machine) product64(x vec, factor uint32, odds lanemask) (low, high vec) {
	if m.neon {
		f := m.integer(factor)
		first, last := m.instruction(m.UMULL)(f, x), m.instruction(m.UMULL2)(f, x)
		return m.everyOther(0, first, last), m.everyOther(1, first, last)
	}
	f, odd, even := m.integer(factor), m.vector(), m.vector()
	low = m.vector()
	m.VPMULLD(f, x, low)
	m.VPMULUDQ(f, x, even)
	m.VPSRLQ(operand.U8(32), x, odd)
	m.VPMULUDQ(f, odd, odd)
	m.VPSRLQ(operand.U8(32), even, even)
	if !m.wide {
		m.VPBLENDD(operand.U8(0xaa), odd, even, even)
		return low, even
	}
	m.VMOVUPS(odd, odds.k, even)
	return low, even
}

// notBelow returns the lanes with x >= y, as integers without signs.
func (m *machine) notBelow(x, y vec) lanemask {
	if m.wide {
		const notLess = 5
		k := m.K()
		m.VPCMPUD(operand.U8(notLess), y, x, k)
		return lanemask{k: k}
	}
	if m.neon {
		return lanemask{y: m.instruction(m.CMHS)(x, y)}
	}
	d := m.YMM()
	m.VPMAXUD(x, y, d)
	m.VPCMPEQD(d, x, d)
	return lanemask{y: d}
}
