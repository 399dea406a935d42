// Transposition and products.

package main

import (
	"fmt"
	"math/bits"

	"github.com/mmcloughlin/avo/operand"
)

func (m *machine) matrices() {
	m.copyRows()
	m.transpose()
	m.images()
	m.dropout()
	for rows := 1; rows <= m.stripRows(); rows++ {
		m.product(rows)
	}
	if !m.neon { // it has no instruction for the signs of a vector, so it uses the kernel in plain Go
		m.nonZero()
	}
	m.sparseProduct()
}

// copyRows writes dst[m,n] = a[m,n].
func (m *machine) copyRows() {
	args, done := m.kernel("CopyRows"), m.label("end")
	args.skipUnless(fieldM, done)
	args.skipUnless(fieldN, done)
	dst, a := args.load(fieldDst), args.load(fieldA)
	s := m.row(args.load(fieldN), m.lanes())
	m.rows(args, []gp{dst, a}, []op{args.at(strideDst), args.at(strideA)}, func() {
		m.eachVector(s, func(p place) { m.store(m.load(p.of(a), p.tail), p.of(dst), p.tail) })
	})
	m.Label(done)
	m.end()
}

// side is the count of rows and columns of a block that is transposed in registers.
func (m *machine) side() int { return min(8, m.lanes()) }

// transpose writes dst[n,m] = a[m,n] block by block.
func (m *machine) transpose() {
	args, done := m.kernel("Transpose"), m.label("end")
	args.skipUnless(fieldM, done)
	args.skipUnless(fieldN, done)
	a, dst, left := args.load(fieldA), args.load(fieldDst), args.load(fieldM)
	m.everySide(left, func(rows gp) {
		rowTail := m.newTail(rows)
		from, to := m.copyGP(a), m.copyGP(dst)
		m.everySide(args.load(fieldN), func(columns gp) {
			block := m.loadRows(args, from, rows, m.newTail(columns))
			m.storeColumns(args, m.turn(block), to, rowTail, columns)
			m.ADDQ(operand.U8(uint8(m.side()*elem)), from)
			m.advanceSide(args.at(strideDst), to)
		})
		m.advanceSide(args.at(strideA), a)
		m.ADDQ(operand.U8(uint8(m.side()*elem)), dst)
	})
	m.Label(done)
	m.end()
}

func (m *machine) copyGP(r gp) gp {
	d := m.GP64()
	m.MOVQ(r, d)
	return d
}

// everySide runs body for each part of up to side() of a positive number. It changes left.
func (m *machine) everySide(left gp, body func(count gp)) {
	loop := m.label("block")
	m.Label(loop)
	count, side := m.copyGP(left), m.GP64()
	m.MOVQ(operand.U32(uint32(m.side())), side)
	m.CMPQ(count, side)
	m.CMOVQGT(side, count)
	body(count)
	m.SUBQ(operand.U8(uint8(m.side())), left)
	m.JGT(jump(loop))
}

// advanceSide moves a pointer on by side() strides.
func (m *machine) advanceSide(stride op, p gp) {
	step := m.GP64()
	m.MOVQ(stride, step)
	m.SHLQ(operand.U8(uint8(bits.TrailingZeros(uint(m.side())))), step)
	m.ADDQ(step, p)
}

// loadRows reads the rows of a block, of up to side() numbers; the last of the rows again in place of those that are
// missing.
func (m *machine) loadRows(args arguments, from, rows gp, t *tail) []vec {
	at, left, none := m.copyGP(from), m.copyGP(rows), m.newIndex()
	block := make([]vec, m.side())
	for i := range block {
		block[i] = m.blockVector()
		m.loadInto(block[i], mem(at, 0), t)
		if i < len(block)-1 {
			step := args.load(strideA)
			m.DECQ(left)
			m.CMOVQLE(none, step)
			m.ADDQ(step, at)
		}
	}
	return block
}

// blockVector returns a vector of side() numbers.
func (m *machine) blockVector() vec {
	if m.neon {
		return m.XMM()
	}
	return m.YMM()
}

// turn transposes a block.
func (m *machine) turn(r []vec) []vec {
	t := make([]vec, len(r))
	join := func(f func(a, b, d op), x, y vec) vec {
		d := m.blockVector()
		f(y, x, d)
		return d
	}
	low := func(a, b, d op) { m.VUNPCKLPS(a, b, d) }
	high := func(a, b, d op) { m.VUNPCKHPS(a, b, d) }
	shuffle := func(order uint8) func(a, b, d op) {
		return func(a, b, d op) { m.VSHUFPS(operand.U8(order), a, b, d) }
	}
	halves := func(order uint8) func(a, b, d op) {
		return func(a, b, d op) { m.VPERM2F128(operand.U8(order), a, b, d) }
	}
	for i := 0; i < len(r); i += 2 {
		t[i], t[i+1] = join(low, r[i], r[i+1]), join(high, r[i], r[i+1])
	}
	for i := 0; i < len(r); i += 4 {
		r[i], r[i+1] = join(shuffle(0x44), t[i], t[i+2]), join(shuffle(0xee), t[i], t[i+2])
		r[i+2], r[i+3] = join(shuffle(0x44), t[i+1], t[i+3]), join(shuffle(0xee), t[i+1], t[i+3])
	}
	if len(r) == 4 {
		return r
	}
	for i := range 4 {
		t[i], t[i+4] = join(halves(0x20), r[i], r[i+4]), join(halves(0x31), r[i], r[i+4])
	}
	return t
}

// storeColumns writes the first vectors of a block, each with the numbers of the tail, which may be all.
func (m *machine) storeColumns(args arguments, block []vec, to gp, rows *tail, columns gp) {
	done := m.label("stored")
	each := func(store func(v vec, at gp)) {
		at, left := m.copyGP(to), m.copyGP(columns)
		for i, v := range block {
			store(v, at)
			if i < len(block)-1 {
				m.DECQ(left)
				m.JLE(jump(done))
				m.ADDQ(args.at(strideDst), at)
			}
		}
	}
	if m.wide || m.neon {
		each(func(v vec, at gp) { m.store(v, mem(at, 0), rows) })
	} else {
		part := m.label("part")
		m.CMPQ(rows.count, operand.U8(8))
		m.JNE(jump(part))
		each(func(v vec, at gp) { m.VMOVUPS(v, mem(at, 0)) })
		m.JMP(jump(done))
		m.Label(part)
		each(func(v vec, at gp) { m.storePieces([]vec{v}, m.copyGP(at), nil, rows.count) })
	}
	m.Label(done)
}

// stripRows is the largest number of rows of a strip of a product: two vectors of results for each row, two of the
// right factor and one of the left are in registers.
func (m *machine) stripRows() int {
	if m.wide {
		return 12
	}
	return 6
}

// tileVectors is the largest number of vectors of each row. Few rows have more, because each sum waits for the one
// before.
func (m *machine) tileVectors(rows int) int {
	most := map[int]int{1: 8, 2: 4, 3: 3}
	switch {
	case m.wide:
		most = map[int]int{1: 8, 2: 8, 3: 6, 4: 4, 5: 4, 6: 4}
	case m.neon:
		most = map[int]int{1: 8, 2: 8, 3: 6}
	}
	return max(m.fewVectors(), most[rows])
}

// fewVectors is the number of vectors of a tile with any number of rows.
func (m *machine) fewVectors() int {
	if m.neon {
		return 4
	}
	return 2
}

func (m *machine) stripName(rows int) string { return fmt.Sprintf("gemm%dx%s", rows, m.suffix()) }

// product is the state of the function of a strip of a product.
type product struct {
	*machine
	args                      arguments
	rows                      int
	dst, b, initial, n        gp
	rowStride, stride3        gp // multiples of the row stride of a
	stride5, columnStride, sb gp
	sparse                    bool // SparseGemm, whose strip is one row
}

// product writes dst[m,n] = c[m,n] + sum over k of a[m,k] b[k,n] for a fixed number of rows.
func (m *machine) product(rows int) {
	args := m.begin("", fmt.Sprintf("gemm%dx", rows))
	p := &product{machine: m, args: args, rows: rows, dst: args.load(fieldDst), b: args.load(fieldB),
		initial: args.load(fieldC), n: args.load(fieldN), rowStride: args.load(strideA),
		columnStride: args.load(columnsA), sb: args.load(strideB)}
	if rows > 3 {
		p.stride3 = m.GP64()
		m.LEAQ(operand.Mem{Base: p.rowStride, Index: p.rowStride, Scale: 2}, p.stride3)
	}
	if rows > 5 {
		p.stride5 = m.GP64()
		m.LEAQ(operand.Mem{Base: p.rowStride, Index: p.rowStride, Scale: 4}, p.stride5)
	}
	done := m.label("end")
	p.wholeTiles(m.tileVectors(rows))
	if m.tileVectors(rows) > m.fewVectors() {
		p.wholeTiles(m.fewVectors())
	}
	p.lastTile(done)
	m.Label(done)
	m.end()
}

// lastTile writes the tile of the columns that the others leave, and jumps to done if there are none.
func (p *product) lastTile(done string) {
	m, one, part := p.machine, p.label("one"), p.label("part")
	m.TESTQ(p.n, p.n)
	m.JLE(jump(done))
	if m.neon {
		for vectors := m.fewVectors(); vectors > 1; vectors-- {
			fewer, rest := m.label("fewer"), m.copyGP(p.n)
			m.SUBQ(operand.U8(uint8((vectors-1)*m.lanes())), rest)
			m.JLE(jump(fewer))
			p.tile(vectors, m.newTail(rest))
			m.JMP(jump(done))
			m.Label(fewer)
		}
		p.tile(1, m.newTail(p.n))
		return
	}
	m.CMPQ(p.n, operand.U8(uint8(m.lanes())))
	m.JEQ(jump(one))
	m.JLT(jump(part))
	rest := m.copyGP(p.n)
	m.SUBQ(operand.U8(uint8(m.lanes())), rest)
	p.tile(2, m.newTail(rest))
	m.JMP(jump(done))
	m.Label(one)
	p.tile(1, nil)
	m.JMP(jump(done))
	m.Label(part)
	if m.wide {
		p.narrowTile(done)
	}
	p.tile(1, m.newTail(p.n))
}

// narrowTile writes the tile of at most 8 columns, and jumps to done unless there are more.
func (p *product) narrowTile(done string) {
	more := p.label("more")
	p.CMPQ(p.n, operand.U8(uint8(p.lanes()/2)))
	p.JGT(jump(more))
	p.narrow = true
	p.tile(1, p.newTail(p.n))
	p.narrow = false
	p.JMP(jump(done))
	p.Label(more)
}

// wholeTiles writes the loop over tiles of whole vectors.
func (p *product) wholeTiles(vectors int) {
	loop, next, same := p.label("tile"), p.label("next"), p.label("same")
	width := operand.U32(uint32(vectors * p.lanes()))
	p.Label(loop)
	p.CMPQ(p.n, width)
	p.JLT(jump(next))
	p.tile(vectors, nil)
	p.advance(vectors, p.dst, p.b)
	p.TESTQ(p.initial, p.initial)
	p.JEQ(jump(same))
	p.advance(vectors, p.initial)
	p.Label(same)
	p.SUBQ(width, p.n)
	p.JMP(jump(loop))
	p.Label(next)
}

// tile writes the code for all rows and so many vectors of columns; the last vector may be partial.
func (p *product) tile(vectors int, t *tail) {
	if p.sparse {
		p.sparseTile(vectors, t)
		return
	}
	total, tailOf := p.totals(vectors, t)
	p.start(total, tailOf)
	p.inner(total, tailOf)
	p.activate(total, tailOf)
	p.finish(total, t, p.dst, tailOf)
}

// totals returns the registers of the results of a tile, and the tail of each vector of a row.
func (p *product) totals(vectors int, t *tail) (total [][]vec, tailOf func(j int) *tail) {
	total = make([][]vec, p.rows)
	for i := range total {
		for range vectors {
			total[i] = append(total[i], p.vector())
		}
	}
	return total, func(j int) *tail {
		if j == vectors-1 {
			return t
		}
		return nil
	}
}

// finish writes the results of a tile, the first of them at dst.
func (p *product) finish(total [][]vec, t *tail, dst gp, tailOf func(j int) *tail) {
	vectors, at := len(total[0]), p.copyGP(dst)
	if t != nil && !p.wide && !p.neon {
		var last []vec
		for i := range total {
			last = append(last, total[i][vectors-1])
		}
		if vectors > 1 {
			p.storeTile(total, at, vectors-1, tailOf)
			p.LEAQ(mem(dst, (vectors-1)*p.vectorBytes()), at)
		}
		p.storePieces(last, at, p.args.at(strideDst), t.count)
		return
	}
	p.storeTile(total, at, vectors, tailOf)
}

// Values of the field Then.
const (
	thenRelu = 1
	thenMask = 2
)

// activate applies the ReLU or the mask to the totals, if the call asks for it.
func (p *product) activate(total [][]vec, tailOf func(j int) *tail) {
	plain, relu := p.label("plain"), p.label("relu")
	p.CMPQ(p.args.at(fieldThen), operand.U8(thenRelu))
	p.JLT(jump(plain))
	p.JEQ(jump(relu))
	zero, one := p.vector(), p.number(1)
	p.zero(zero)
	p.eachInitial(total, p.copyGP(p.initial), func(v vec, from operand.Mem, t *tail) {
		p.VMULPS(p.keep(p.compare(more, p.load(from, t), zero), one), v, v)
	}, tailOf)
	p.JMP(jump(plain))
	p.Label(relu)
	for _, row := range total {
		for _, v := range row {
			p.VMOVUPS(p.relu(v), v)
		}
	}
	p.Label(plain)
}

// eachInitial writes a step for each total and its place in c. It changes at, which is at the first.
func (p *product) eachInitial(total [][]vec, at gp, step func(v vec, from operand.Mem, t *tail),
	tailOf func(j int) *tail) {
	for i := range total {
		for j, v := range total[i] {
			step(v, mem(at, j*p.vectorBytes()), tailOf(j))
		}
		if i < p.rows-1 {
			p.ADDQ(p.args.at(strideC), at)
		}
	}
}

// storeTile writes the first vectors of each row.
func (p *product) storeTile(total [][]vec, at gp, vectors int, tailOf func(j int) *tail) {
	for i := range total {
		for j := range vectors {
			p.store(total[i][j], mem(at, j*p.vectorBytes()), tailOf(j))
		}
		if i < p.rows-1 {
			p.ADDQ(p.args.at(strideDst), at)
		}
	}
}

// start sets the totals to the initial values.
func (p *product) start(total [][]vec, tailOf func(j int) *tail) {
	p.startFrom(p.copyGP(p.initial), total, tailOf)
}

// startFrom sets the totals to the numbers at a place, or to 0 if it is nil. It changes at.
func (p *product) startFrom(at gp, total [][]vec, tailOf func(j int) *tail) {
	zeros, ready := p.label("zeros"), p.label("ready")
	p.TESTQ(at, at)
	p.JEQ(jump(zeros))
	if !p.sparse {
		p.CMPQ(p.args.at(fieldThen), operand.U8(thenMask))
		p.JEQ(jump(zeros))
	}
	p.eachInitial(total, at, p.loadInto, tailOf)
	p.JMP(jump(ready))
	p.Label(zeros)
	for _, row := range total {
		p.zero(row...)
	}
	p.Label(ready)
}

// inner writes the loop over the inner index.
func (p *product) inner(total [][]vec, tailOf func(j int) *tail) {
	a, b, k := []gp{p.args.load(fieldA)}, p.copyGP(p.b), p.args.load(fieldK)
	if p.rows > 7 {
		second := p.GP64()
		p.LEAQ(operand.Mem{Base: a[0], Index: p.stride5, Scale: 1}, second)
		p.LEAQ(operand.Mem{Base: second, Index: p.rowStride, Scale: 2}, second)
		a = append(a, second)
	}
	var ahead gp
	if p.prefetches() {
		ahead = p.copyGP(a[0])
		p.ADDQ(p.args.at(fieldAhead), ahead)
	}
	loop, done := p.label("k"), p.label("summed")
	p.TESTQ(k, k)
	p.JLE(jump(done))
	p.Label(loop)
	if p.prefetches() {
		p.prefetch(len(total[0]), ahead)
	}
	p.step(total, a, b, tailOf)
	p.ADDQ(p.sb, b)
	for _, r := range a {
		p.ADDQ(p.columnStride, r)
	}
	p.DECQ(k)
	p.JNE(jump(loop))
	p.Label(done)
}

// prefetches reports whether a strip prefetches: not one of few rows, which may be the only one. With AVX2 it slowed
// down products of wide matrices, and NEON was not measured.
func (p *product) prefetches() bool { return p.wide && p.rows > 3 }

// prefetch loads a line that ahead points to and moves the pointer on. Tiles of one vector compute so little for each
// number of the left factor that the lines for the next strip would replace those of this one in the first cache.
func (p *product) prefetch(vectors int, ahead gp) {
	if vectors == 1 {
		p.PREFETCHT1(mem(ahead, 0))
	} else {
		p.PREFETCHT0(mem(ahead, 0))
	}
	p.ADDQ(p.args.at(fieldAheadStep), ahead)
}

// step adds the products of one inner index.
func (p *product) step(total [][]vec, a []gp, b gp, tailOf func(j int) *tail) {
	vectors := len(total[0])
	if p.rows == 1 && tailOf(vectors-1) == nil && !p.neon { // each vector of b is read once
		x := p.vector()
		p.VBROADCASTSS(p.rowOf(a, 0), x)
		for j, v := range total[0] {
			p.VFMADD231PS(mem(b, j*p.vectorBytes()), x, v)
		}
		return
	}
	right := make([]vec, vectors)
	for j := range right {
		right[j] = p.load(mem(b, j*p.vectorBytes()), tailOf(j))
	}
	for i, row := range total {
		if p.wide && vectors == 1 {
			p.VFMADD231PS_BCST(p.rowOf(a, i), right[0], row[0])
			continue
		}
		x := p.vector()
		if p.neon { // an instruction multiplies with the first lane, and a load of one number is faster than of a vector
			p.VMOVSS(p.rowOf(a, i), x)
			for j, v := range row {
				p.FMLA(right[j], x, v)
			}
			continue
		}
		p.VBROADCASTSS(p.rowOf(a, i), x)
		for j, v := range row {
			p.VFMADD231PS(right[j], x, v)
		}
	}
}

// rowOf returns the place of row i of a: from the first pointer, or from the second, which is at row 7.
func (p *product) rowOf(a []gp, i int) operand.Mem {
	at := operand.Mem{Base: a[0]}
	switch i {
	case 0:
	case 1, 2, 4, 8:
		at.Index, at.Scale = p.rowStride, uint8(i)
	case 3, 6:
		at.Index, at.Scale = p.stride3, uint8(i/3)
	case 5, 10:
		at.Index, at.Scale = p.stride5, uint8(i/5)
	case 7:
		at.Base = a[1]
	case 9, 11:
		at.Base, at.Index, at.Scale = a[1], p.rowStride, uint8(i-7)
	}
	return at
}
