// Products whose left factor has few numbers that are not 0.

package main

import "github.com/mmcloughlin/avo/operand"

// nonZero writes a word of 64 bits for each group of 64 numbers: 1 for those that are not 0.
func (m *machine) nonZero() {
	const group = 64
	args, done := m.kernel("NonZero"), m.label("end")
	args.skipUnless(fieldM, done)
	dst, a, zero := args.load(fieldDst), args.load(fieldA), m.vector()
	m.zero(zero)
	m.rows(args, []gp{dst, a}, []op{operand.U8(group / 8), operand.U32(group * elem)}, func() {
		word := m.newIndex()
		for at := group - m.lanes(); at >= 0; at -= m.lanes() {
			flags, mask := m.GP64(), m.compare(different, m.load(mem(a, at*elem), nil), zero)
			if m.wide {
				m.KMOVW(mask.k, flags.As32())
			} else {
				m.VMOVMSKPS(mask.y, flags.As32())
			}
			m.SHLQ(operand.U8(uint8(m.lanes())), word)
			m.ORQ(flags, word)
		}
		m.MOVQ(word, mem(dst, 0))
	})
	m.Label(done)
	m.end()
}

// sparseColumns is the number of columns of a tile: enough totals that none waits for the one before, and few enough
// that the rows of b, in these columns, stay in the first cache.
const sparseColumns = 64

// sparseProduct writes dst[m,n] = c[m,n] + sum of the terms of row m, tile by tile.
func (m *machine) sparseProduct() {
	args, done := m.kernel("SparseGemm"), m.label("end")
	args.skipUnless(fieldM, done)
	args.skipUnless(fieldN, done)
	p := &product{machine: m, args: args, rows: 1, sparse: true, dst: args.load(fieldDst), b: args.load(fieldB),
		initial: args.load(fieldC), n: args.load(fieldN)}
	p.wholeTiles(sparseColumns / m.lanes())
	p.wholeTiles(m.fewVectors())
	p.lastTile(done)
	m.Label(done)
	m.end()
}

// sparseTile writes the loop over the rows of a tile.
func (p *product) sparseTile(vectors int, t *tail) {
	to, from, word, left := p.copyGP(p.dst), p.copyGP(p.initial), p.args.load(fieldA), p.args.load(fieldM)
	row, last := p.label("row"), p.label("last")
	p.Label(row)
	total, tailOf := p.totals(vectors, t)
	p.startFrom(p.copyGP(from), total, tailOf)
	p.addTerms(word, total, tailOf)
	p.finish(total, t, to, tailOf)
	p.DECQ(left)
	p.JLE(jump(last))
	p.ADDQ(p.args.at(strideDst), to)
	p.TESTQ(from, from)
	p.JEQ(jump(row))
	p.ADDQ(p.args.at(strideC), from)
	p.JMP(jump(row))
	p.Label(last)
}

// addTerms adds the terms of a row: the word before them is their count.
func (p *product) addTerms(word gp, total [][]vec, tailOf func(j int) *tail) {
	const bytes = 8
	count, next, done := p.GP64(), p.label("term"), p.label("summed")
	p.MOVQ(mem(word, 0), count)
	p.ADDQ(operand.U8(bytes), word)
	p.TESTQ(count, count)
	p.JEQ(jump(done))
	p.Label(next)
	x, b := p.vector(), p.GP64()
	p.MOVQ(mem(word, 0), b)
	p.SHRQ(operand.U8(32), b)
	p.ADDQ(p.b, b)
	if p.neon {
		p.VMOVSS(mem(word, 0), x)
	} else {
		p.VBROADCASTSS(mem(word, 0), x)
	}
	for j, v := range total[0] {
		at := mem(b, j*p.vectorBytes())
		switch {
		case p.neon:
			p.FMLA(p.load(at, tailOf(j)), x, v)
		case tailOf(j) == nil:
			p.VFMADD231PS(at, x, v)
		default:
			p.VFMADD231PS(p.load(at, tailOf(j)), x, v)
		}
	}
	p.ADDQ(operand.U8(bytes), word)
	p.DECQ(count)
	p.JNE(jump(next))
	p.Label(done)
}
