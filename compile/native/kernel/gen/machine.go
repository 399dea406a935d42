// The three instruction sets behind one interface: vectors, constants, masks, loops, and the arguments of kernels.

package main

import (
	"fmt"
	"math"
	"strings"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
	"github.com/mmcloughlin/avo/x86"
)

type (
	vec = reg.VecVirtual
	gp  = reg.GPVirtual
	op  = operand.Op
)

// machine writes functions for AVX-512 (wide), for AVX2 with FMA, or for NEON: these have the instructions of AVX2 on
// vectors of 4 numbers, and a few of their own, until arm64.go translates them.
type machine struct {
	*build.Context
	set       string // name of the set of kernels
	wide      bool
	neon      bool
	narrow    bool // AVX-512 on vectors of 8 numbers, which take half of the time on some processors
	words     map[uint32]operand.Mem
	masks     *operand.Mem
	orders    map[bool]operand.Mem // of pairs of lanes
	labels    int
	functions []string
	table     []entry
}

// entry is a row of the table of a set.
type entry struct{ kernel, function string }

func newMachine(set string) *machine {
	m := &machine{Context: build.NewContext(), set: set, wide: set == "avx512", neon: set == "neon",
		words: make(map[uint32]operand.Mem)}
	m.ConstraintExpr(m.arch())
	return m
}

// arch is the architecture of the set, as Go calls it.
func (m *machine) arch() string {
	if m.neon {
		return "arm64"
	}
	return "amd64"
}

// suffix ends the names of functions.
func (m *machine) suffix() string { return fmt.Sprint(8 * m.vectorBytes()) }

// lanes is the count of numbers in a vector.
func (m *machine) lanes() int {
	switch {
	case m.wide:
		return 16
	case m.neon:
		return 4
	}
	return 8
}

// vectorBytes is the size of a vector.
func (m *machine) vectorBytes() int { return m.lanes() * elem }

const elem = 4

func (m *machine) vector() vec {
	switch {
	case m.wide && !m.narrow:
		return m.ZMM()
	case m.neon:
		return m.XMM()
	}
	return m.YMM()
}

func (m *machine) label(name string) string {
	m.labels++
	return fmt.Sprintf("%s%d", name, m.labels)
}

func jump(label string) op { return operand.LabelRef(label) }

func mem(base reg.Register, disp int) operand.Mem { return operand.Mem{Base: base, Disp: disp} }

// Offsets of the fields of Args.
const (
	fieldDst = 8 * iota
	fieldA
	fieldB
	fieldC
	fieldM
	fieldN
	fieldK
	strideDst
	strideA
	strideB
	strideC
	columnsA
	blocksDst
	fieldThen
	fieldAhead
	fieldAheadStep
)

// arguments is the register with the pointer to Args.
type arguments struct {
	m    *machine
	base gp
}

// begin starts the function of a kernel. Without a kernel the function is only declared.
func (m *machine) begin(kernel, function string) arguments {
	function += m.suffix()
	m.functions = append(m.functions, function)
	if kernel != "" {
		m.table = append(m.table, entry{kernel, function})
	}
	m.Function(function)
	m.Attributes(attr.NOSPLIT)
	m.SignatureExpr("func(args *byte)")
	return arguments{m, m.Load(m.Param("args"), m.GP64()).(gp)}
}

// kernel starts the function of a kernel that has its name, with a small first letter.
func (m *machine) kernel(name string) arguments {
	return m.begin(name, strings.ToLower(name[:1])+name[1:])
}

func (m *machine) end() {
	m.VZEROUPPER()
	m.RET()
}

// at is a field in memory.
func (a arguments) at(field int) operand.Mem { return mem(a.base, field) }

// load reads a field.
func (a arguments) load(field int) gp {
	r := a.m.GP64()
	a.m.MOVQ(a.at(field), r)
	return r
}

// skipUnless jumps to the label if a size is not positive.
func (a arguments) skipUnless(field int, label string) {
	a.m.CMPQ(a.at(field), operand.U8(0))
	a.m.JLE(jump(label))
}

// word returns a constant in memory: 4 bytes, which AVX-512 broadcasts, or a vector.
func (m *machine) word(bits uint32) operand.Mem {
	if at, there := m.words[bits]; there {
		return at
	}
	at := m.StaticGlobal(fmt.Sprintf("word_%08x", bits))
	m.DataAttributes(attr.RODATA | attr.NOPTR)
	for i := range m.lanes() {
		if i == 0 || !m.wide {
			m.AddDatum(elem*i, operand.U32(bits))
		}
	}
	m.words[bits] = at
	return at
}

func bitsOf(x float64) uint32 { return math.Float32bits(float32(x)) }

// number returns a vector of one number.
func (m *machine) number(x float64) vec { return m.integer(bitsOf(x)) }

// integer returns a vector of one integer.
func (m *machine) integer(bits uint32) vec {
	v := m.vector()
	if m.wide {
		m.VBROADCASTSS(m.word(bits), v)
	} else {
		m.VMOVUPS(m.word(bits), v)
	}
	return v
}

// constant writes an instruction whose first operand is a constant; broadcast is its form in AVX-512.
func (m *machine) constant(plain, broadcast func(...op), bits uint32, others ...op) {
	if m.wide {
		plain = broadcast
	}
	plain(append([]op{m.word(bits)}, others...)...)
}

// zero sets registers to 0.
func (m *machine) zero(vs ...vec) {
	for _, v := range vs {
		if !m.wide {
			m.VXORPS(v, v, v)
			continue
		}
		i, err := x86.VPXORD(v, v, v)
		if err != nil {
			panic(err)
		}
		i.CancellingInputs = true // the old value is not read, which avo does not say of this instruction
		m.Instruction(i)
	}
}

func (m *machine) copyOf(v op) vec {
	d := m.vector()
	m.VMOVUPS(v, d)
	return d
}

// lanemask is a set of lanes: a mask register, or a vector of 0 and -1.
type lanemask struct {
	k reg.OpmaskVirtual
	y vec
}

// Predicates of comparisons.
const (
	less        = 0x11
	unordered   = 0x03
	notEqual    = 0x0c // ordered: false if one is NaN
	equal       = 0x00
	different   = 0x04 // not equal, or NaN
	notLessSame = 0x16 // greater, or NaN
	more        = 0x1e
	notLess     = 0x1d // greater or equal: false if one is NaN
	ordered     = 0x07 // no NaN
)

// compare returns the lanes with x predicate y.
func (m *machine) compare(predicate uint8, x vec, y op) lanemask {
	if m.wide {
		k := m.K()
		m.VCMPPS(operand.U8(predicate), y, x, k)
		return lanemask{k: k}
	}
	d := m.vector()
	m.VCMPPS(operand.U8(predicate), y, x, d)
	return lanemask{y: d}
}

// compareNumber returns the lanes with x predicate y.
func (m *machine) compareNumber(predicate uint8, x vec, y float64) lanemask {
	if m.wide {
		k := m.K()
		m.VCMPPS_BCST(operand.U8(predicate), m.word(bitsOf(y)), x, k)
		return lanemask{k: k}
	}
	return m.compare(predicate, x, m.word(bitsOf(y)))
}

// negative returns the lanes with a sign bit.
func (m *machine) negative(x vec) lanemask {
	if m.wide {
		k := m.K()
		m.VPMOVD2M(x, k)
		return lanemask{k: k}
	}
	if m.neon {
		d := m.vector()
		m.VPSRAD(operand.U8(31), x, d)
		return lanemask{y: d}
	}
	return lanemask{y: x} // VBLENDVPS reads the sign bits
}

// choose returns yes in the lanes of the mask and no in the others.
func (m *machine) choose(mask lanemask, yes, no vec) vec {
	d := m.vector()
	if m.wide {
		m.VBLENDMPS(yes, no, mask.k, d)
	} else {
		m.VBLENDVPS(mask.y, yes, no, d)
	}
	return d
}

// keep returns x in the lanes of the mask and 0 in the others.
func (m *machine) keep(mask lanemask, x vec) vec {
	d := m.vector()
	if m.wide {
		m.VMOVUPS_Z(x, mask.k, d)
	} else {
		m.VANDPS(x, mask.y, d)
	}
	return d
}

// tail is the numbers of a row that do not fill a vector: their count, and the mask of the first so many lanes.
type tail struct {
	lanemask
	count gp
}

// newTail makes the mask of the first count lanes, except for NEON, which loads and stores without masks.
func (m *machine) newTail(count gp) *tail {
	switch {
	case m.wide:
		bits, k := m.GP64(), m.K()
		m.MOVQ(operand.U32(1), bits)
		m.SHLXQ(count, bits, bits)
		m.DECQ(bits)
		m.KMOVW(bits.As32(), k)
		return &tail{lanemask{k: k}, count}
	case m.neon:
		return &tail{count: count}
	}
	return &tail{m.first(count), count}
}

// first returns the first lanes of a vector, for AVX2 and NEON.
func (m *machine) first(count gp) lanemask {
	at, back, y := m.GP64(), m.GP64(), m.vector()
	m.LEAQ(m.maskTable().Offset(m.vectorBytes()), at)
	m.MOVQ(count, back)
	m.SHLQ(operand.U8(2), back)
	m.SUBQ(back, at)
	m.VMOVDQU(mem(at, 0), y)
	return lanemask{y: y}
}

// mask returns the lanes of a tail.
func (m *machine) mask(t *tail) lanemask {
	if m.neon {
		return m.first(t.count)
	}
	return t.lanemask
}

// maskTable returns a vector of ones and one of zeros.
func (m *machine) maskTable() operand.Mem {
	if m.masks == nil {
		at := m.StaticGlobal("masks")
		m.DataAttributes(attr.RODATA | attr.NOPTR)
		for i := range 2 * m.lanes() {
			m.AddDatum(elem*i, operand.U32(uint32(int32(i-m.lanes())>>31)))
		}
		m.masks = &at
	}
	return *m.masks
}

// load reads a vector, or only the lanes of a tail.
func (m *machine) load(from operand.Mem, t *tail) vec {
	v := m.vector()
	m.loadInto(v, from, t)
	return v
}

// loadInto reads into a register.
func (m *machine) loadInto(v vec, from operand.Mem, t *tail) {
	switch {
	case t == nil:
		m.VMOVUPS(from, v)
	case m.wide:
		m.VMOVUPS_Z(from, t.k, v)
	case m.neon:
		m.own(loadFirst, []op{from, t.count}, v)
	default:
		m.VMASKMOVPS(from, t.y, v)
	}
}

// store writes a vector, or only the lanes of a tail.
func (m *machine) store(v vec, to operand.Mem, t *tail) {
	switch {
	case t == nil:
		m.VMOVUPS(v, to)
	case m.wide:
		m.VMOVUPS(v, t.k, to)
	case m.neon:
		m.own(storeFirst, []op{v, t.count}, to)
	default:
		at := m.GP64()
		m.LEAQ(to, at)
		m.storePieces([]vec{v}, at, nil, t.count)
	}
}

// storePieces writes the first count numbers, fewer than 8, of each vector, whose places are stride bytes apart.
// Stores with a mask are slow on AMD's processors without AVX-512. It changes the vectors.
func (m *machine) storePieces(vs []vec, first gp, stride op, count gp) {
	for size := 4; size > 0; size /= 2 {
		skip := m.label("piece")
		m.TESTQ(operand.U32(uint32(size)), count)
		m.JEQ(jump(skip))
		at := first
		if len(vs) > 1 {
			at = m.GP64()
			m.MOVQ(first, at)
		}
		for i, v := range vs {
			x := v.AsX()
			switch size {
			case 4:
				m.VMOVUPS(x, mem(at, 0))
				m.VEXTRACTF128(operand.U8(1), v.AsY(), x)
			case 2:
				m.VMOVLPS(x, mem(at, 0))
				m.VPSRLDQ(operand.U8(8), x, x)
			case 1:
				m.VMOVSS(x, mem(at, 0))
			}
			if i < len(vs)-1 {
				m.ADDQ(stride, at)
			}
		}
		if size > 1 {
			m.ADDQ(operand.U8(uint8(size*elem)), first)
		}
		m.Label(skip)
	}
}

// span is a row of N numbers: the bytes of its whole blocks, the numbers behind them, and the tail.
type span struct {
	whole, rest gp
	block       int // numbers of a block
	*tail
}

// row divides a row of n numbers into blocks of at least a vector.
func (m *machine) row(n gp, block int) span {
	whole, rest := m.GP64(), m.GP64()
	m.MOVQ(n, whole)
	m.ANDQ(operand.I8(int8(-block)), whole)
	m.SHLQ(operand.U8(2), whole)
	m.MOVQ(n, rest)
	m.ANDQ(operand.U8(uint8(block-1)), rest)
	count := rest
	if block > m.lanes() {
		count = m.copyGP(rest)
		m.ANDQ(operand.U8(uint8(m.lanes()-1)), count)
	}
	return span{whole, rest, block, m.newTail(count)}
}

// place is where a step of a loop over a row works: the bytes from its begin in a register, more bytes from there, and
// the tail, nil for a whole vector.
type place struct {
	index gp
	disp  int
	tail  *tail
}

// of returns the place in the row at p.
func (p place) of(row gp) operand.Mem {
	return operand.Mem{Base: row, Index: p.index, Scale: 1, Disp: p.disp}
}

// blocks writes the loop over the whole blocks of a row.
func (m *machine) blocks(s span, index gp, body func()) {
	loop, rest := m.label("block"), m.label("rest")
	m.CMPQ(index, s.whole)
	m.JGE(jump(rest))
	m.Label(loop)
	body()
	m.ADDQ(operand.U32(uint32(s.block*elem)), index)
	m.CMPQ(index, s.whole)
	m.JLT(jump(loop))
	m.Label(rest)
}

// newIndex returns a register with 0.
func (m *machine) newIndex() gp {
	index := m.GP64()
	m.XORQ(index, index)
	return index
}

// eachVector writes the loop over the vectors of a row whose blocks are vectors.
func (m *machine) eachVector(s span, body func(p place)) {
	index, done := m.newIndex(), m.label("done")
	m.blocks(s, index, func() { body(place{index: index}) })
	m.TESTQ(s.count, s.count)
	m.JEQ(jump(done))
	body(place{index: index, tail: s.tail})
	m.Label(done)
}

// each16 writes the loop over a row whose blocks are 16 numbers, the unit of sums, whatever the size of a vector.
// part is the number of the vector in the block.
func (m *machine) each16(s span, body func(part int, p place)) {
	index, done := m.newIndex(), m.label("done")
	at := func(part int, t *tail) place { return place{index, part * m.vectorBytes(), t} }
	m.blocks(s, index, func() {
		for part := range m.parts() {
			body(part, at(part, nil))
		}
	})
	last := make([]string, m.parts())
	for part := range last[1:] {
		last[part] = m.label("last")
		m.CMPQ(s.rest, operand.U8(uint8((part+1)*m.lanes())))
		m.JLT(jump(last[part]))
		body(part, at(part, nil))
	}
	for part := len(last) - 1; part >= 0; part-- {
		if last[part] != "" {
			m.Label(last[part])
		}
		m.TESTQ(s.count, s.count)
		m.JEQ(jump(done))
		body(part, at(part, s.tail))
		if part > 0 {
			m.JMP(jump(done))
		}
	}
	m.Label(done)
}

// parts is the count of vectors with 16 numbers.
func (m *machine) parts() int { return 16 / m.lanes() }

// rows writes the loop over the M rows of a call, at least one: after each, the pointers move on by their strides.
func (m *machine) rows(a arguments, pointers []gp, strides []op, body func()) {
	m.together(a.load(fieldM), 1, pointers, strides, body)
}

// together writes the loop over whole groups of so many rows. left is the number of rows, and afterwards of those that
// are in no group; there must be a row if a group is one.
func (m *machine) together(left gp, group int, pointers []gp, strides []op, body func()) {
	loop, next := m.label("row"), m.label("next")
	m.Label(loop)
	if group > 1 {
		m.CMPQ(left, operand.U8(uint8(group)))
		m.JLT(jump(next))
	}
	body()
	for i, p := range pointers {
		for range group {
			m.ADDQ(strides[i], p)
		}
	}
	if group > 1 {
		m.SUBQ(operand.U8(uint8(group)), left)
		m.JMP(jump(loop))
		m.Label(next)
		return
	}
	m.DECQ(left)
	m.JNE(jump(loop))
}
