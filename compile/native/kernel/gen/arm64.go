// NEON: avo allocates the registers of functions that consist of instructions of AVX2 on vectors of 4 numbers and of
// those below; then each instruction is translated. Go's assembler has no names for most instructions on vectors of
// numbers, so they are written as words, with their names as comments.

package main

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/mmcloughlin/avo/ir"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Instructions that AVX2 does not have. The last operand is the result.
const (
	loadFirst  = "LOADFIRST"  // from, count, v: the first 0 to 4 numbers, and zeros
	storeFirst = "STOREFIRST" // v, count, to: the first 0 to 4 numbers
	fmax       = "FMAX"       // y, x, d: NaN if x or y is NaN, and 0 rather than -0
	fmin       = "FMIN"       // y, x, d: NaN if x or y is NaN, and -0 rather than 0
	fmla       = "FMLA"       // x, y, d: d + x y[0], with one rounding
	umull      = "UMULL"      // y, x, d: products of the first two words, as integers without signs of 64 bits
	umull2     = "UMULL2"     // y, x, d: those of the last two words
	cmhs       = "CMHS"       // y, x, d: x >= y, as integers without signs
)

func (m *machine) own(opcode string, inputs []op, result op) {
	m.Instruction(&ir.Instruction{Opcode: opcode, Operands: append(inputs, result), Inputs: inputs, Outputs: []op{result}})
}

// FMAX is an instruction of NEON.
func (m *machine) FMAX(ops ...op) { m.own(fmax, ops[:2:2], ops[2]) }

// FMIN is an instruction of NEON.
func (m *machine) FMIN(ops ...op) { m.own(fmin, ops[:2:2], ops[2]) }

// UMULL is an instruction of NEON.
func (m *machine) UMULL(ops ...op) { m.own(umull, ops[:2:2], ops[2]) }

// UMULL2 is an instruction of NEON.
func (m *machine) UMULL2(ops ...op) { m.own(umull2, ops[:2:2], ops[2]) }

// CMHS is an instruction of NEON.
func (m *machine) CMHS(ops ...op) { m.own(cmhs, ops[:2:2], ops[2]) }

// FMLA is an instruction of NEON, with the first lane of y.
func (m *machine) FMLA(x, y, d vec) {
	m.Instruction(&ir.Instruction{Opcode: fmla, Operands: []op{x, y, d}, Inputs: []op{x, y, d}, Outputs: []op{d}})
}

// Registers that only the translation uses. General registers of amd64 become R0 to R15.
const (
	scratch   = 31 // a vector
	scratch2  = 30 // the first vector that avo must not allocate
	address   = 16
	value     = 17
	constants = 19 // address of the table of constants
	stack     = 31 // as the base of an address
)

// locals is the offset of local memory on the stack: the return address is below it, and loads need multiples of 16.
const locals = 16

// instruction is an instruction on vectors. Its operands have the shape of the result, or another one behind a slash.
type instruction struct {
	name, shape string
	word        uint32
}

// direct are the instructions of two operands and a result, in the order y, x, d.
var direct = map[string]instruction{
	"VADDPS": {"fadd", "4s", 0x4e20d400}, "VSUBPS": {"fsub", "4s", 0x4ea0d400}, "VMULPS": {"fmul", "4s", 0x6e20dc00},
	"VDIVPS": {"fdiv", "4s", 0x6e20fc00}, fmax: {"fmax", "4s", 0x4e20f400}, fmin: {"fmin", "4s", 0x4ea0f400},
	"VFMADD231PS": {"fmla", "4s", 0x4e20cc00}, "VFNMADD231PS": {"fmls", "4s", 0x4ea0cc00},
	"VANDPS": {"and", "16b", 0x4e201c00}, "VORPS": {"orr", "16b", 0x4ea01c00}, "VXORPS": {"eor", "16b", 0x6e201c00},
	"VPADDD": {"add", "4s", 0x4ea08400}, "VPSUBD": {"sub", "4s", 0x6ea08400},
	umull: {"umull", "2d/2s", 0x2ea0c000}, umull2: {"umull2", "2d/4s", 0x6ea0c000}, cmhs: {"cmhs", "4s", 0x6ea03c00},
	"VUNPCKLPS": {"zip1", "4s", 0x4e803800}, "VUNPCKHPS": {"zip2", "4s", 0x4e807800},
}

var (
	fcmeq = instruction{"fcmeq", "4s", 0x4e20e400}
	fcmge = instruction{"fcmge", "4s", 0x6e20e400}
	fcmgt = instruction{"fcmgt", "4s", 0x6ea0e400}
	bsl   = instruction{"bsl", "16b", 0x6e601c00} // n in the bits of d, m in the others
	bit   = instruction{"bit", "16b", 0x6ea01c00} // n in the bits of m, d in the others
	bif   = instruction{"bif", "16b", 0x6ee01c00} // d in the bits of m, n in the others
	not   = instruction{"not", "16b", 0x6e205800}
	fneg  = instruction{"fneg", "4s", 0x6ea0f800}
	fsqrt = instruction{"fsqrt", "4s", 0x6ea1f800}
	scvtf = instruction{"scvtf", "4s", 0x4e21d800}
	zip1d = instruction{"zip1", "2d", 0x4ec03800}
	zip2d = instruction{"zip2", "2d", 0x4ec07800}
	uzp1  = instruction{"uzp1", "4s", 0x4e801800}
	uzp2  = instruction{"uzp2", "4s", 0x4e805800}
	orr   = direct["VORPS"]
)

// access is a kind of load or store: of a register at an address, and of an address with an index.
type access struct {
	name        string
	register    string
	size        int
	at, indexed uint32
}

var (
	loadQ  = access{"ldr", "q", 16, 0x3dc00000, 0x3ce06800}
	storeQ = access{"str", "q", 16, 0x3d800000, 0x3ca06800}
	loadD  = access{"ldr", "d", 8, 0xfd400000, 0xfc606800}
	storeD = access{"str", "d", 8, 0xfd000000, 0xfc206800}
	loadS  = access{"ldr", "s", 4, 0xbd400000, 0xbc606800}
	storeS = access{"str", "s", 4, 0xbd000000, 0xbc206800}
)

// translator writes a file of NEON.
type translator struct {
	bytes.Buffer
	at     map[string]int // places of constants in their table
	labels int
}

// translate returns the text of a file whose registers are allocated.
func translate(f *ir.File) (text []byte, err error) {
	t := &translator{at: make(map[string]int)}
	var data strings.Builder
	size := 0
	for _, s := range f.Sections {
		if g, ok := s.(*ir.Global); ok {
			t.at[g.Symbol.Name] = size
			for _, d := range g.Data {
				fmt.Fprintf(&data, "DATA words<>+%d(SB)/%d, %s\n", size+d.Offset, d.Value.Bytes(), d.Value.Asm())
			}
			size += g.Size
		}
	}
	fmt.Fprintf(t, "// Code generated by %s. DO NOT EDIT.\n\n#include \"textflag.h\"\n\n%s", generator, data.String())
	fmt.Fprintf(t, "GLOBL words<>(SB), RODATA|NOPTR, $%d\n", size)
	for _, fn := range f.Functions() {
		if err := t.function(fn); err != nil {
			return nil, fmt.Errorf("%s: %w", fn.Name, err)
		}
	}
	return t.Bytes(), nil
}

func (t *translator) function(fn *ir.Function) error {
	frame := "NOSPLIT|NOFRAME, $0"
	if uses(fn, reg.StackPointer) {
		frame = fmt.Sprintf("NOSPLIT, $%d", locals-8+fn.FrameBytes())
	}
	fmt.Fprintf(t, "\n// %s\nTEXT ·%s(SB), %s-%d\n", fn.Stub(), fn.Name, frame, fn.ArgumentBytes())
	if uses(fn, reg.StaticBase) {
		t.line("MOVD $words<>(SB), R%d", constants)
	}
	for _, n := range fn.Nodes {
		switch n := n.(type) {
		case ir.Label:
			fmt.Fprintf(t, "%s:\n", n)
		case *ir.Instruction:
			for _, r := range n.Registers() {
				if r.Kind() == reg.KindVector && number(r) >= scratch2 {
					return fmt.Errorf("%s: too many vectors in use", n.Opcode)
				}
			}
			if !t.generalInstruction(n) && !t.vectorInstruction(n) {
				return fmt.Errorf("no translation of %s %v", n.Opcode, n.Operands)
			}
		}
	}
	return nil
}

// uses reports whether a function has addresses with a base: of constants, or of local memory.
func uses(fn *ir.Function, base reg.Register) bool {
	for _, i := range fn.Instructions() {
		for _, o := range i.Operands {
			if m, ok := o.(operand.Mem); ok && m.Base == base {
				return true
			}
		}
	}
	return false
}

// number is that of an allocated register.
func number(o op) int { return int(reg.ToPhysical(o.(reg.Register)).PhysicalIndex()) }

func (t *translator) line(format string, values ...any) { fmt.Fprintf(t, "\t"+format+"\n", values...) }

func (t *translator) word(word uint32, format string, values ...any) {
	t.line("WORD $0x%08x // %s", word, fmt.Sprintf(format, values...))
}

// put writes an instruction with the result d and up to two operands.
func (t *translator) put(i instruction, d int, operands ...int) {
	shape, other, differs := strings.Cut(i.shape, "/")
	if !differs {
		other = shape
	}
	text := fmt.Sprintf("%s v%d.%s", i.name, d, shape)
	for k, o := range operands {
		i.word |= uint32(o) << (5 + 11*k)
		text += fmt.Sprintf(", v%d.%s", o, other)
	}
	t.word(i.word|uint32(d), "%s", text)
}

func (t *translator) zero(d int) { t.word(0x4f000400|uint32(d), "movi v%d.4s, #0", d) }

// copy copies a vector, unless it is in its place.
func (t *translator) copy(d, x int) {
	if d != x {
		t.word(orr.word|uint32(x<<16|x<<5|d), "mov v%d.16b, v%d.16b", d, x)
	}
}

// choose writes the instructions for yes in the bits of the mask and no in the others. It changes the scratch register.
func (t *translator) choose(d, mask, yes, no int) {
	switch d {
	case no:
		t.put(bit, d, yes, mask)
	case yes:
		t.put(bif, d, no, mask)
	case mask:
		t.put(bsl, d, yes, no)
	default:
		t.copy(d, mask)
		t.put(bsl, d, yes, no)
	}
}

// vector returns the register of an operand. A number in memory is loaded into a register, which may be changed.
func (t *translator) vector(o op, register int) int {
	if m, ok := o.(operand.Mem); ok {
		t.access(loadQ, register, m)
		return register
	}
	return number(o)
}

// access loads or stores a vector register.
func (t *translator) access(a access, v int, m operand.Mem) {
	base, disp := t.base(m)
	if m.Index != nil && disp == 0 && (m.Scale == 1 || int(m.Scale) == a.size) {
		word, shift := a.indexed|uint32(number(m.Index)<<16|base<<5|v), ""
		if m.Scale > 1 {
			word, shift = word|1<<12, fmt.Sprintf(", lsl #%d", log2(m.Scale))
		}
		t.word(word, "%s %s%d, [x%d, x%d%s]", a.name, a.register, v, base, number(m.Index), shift)
		return
	}
	if m.Index != nil {
		t.line("ADD R%d<<%d, R%d, R%d", number(m.Index), log2(m.Scale), base, address)
		base = address
	}
	if disp < 0 || disp%a.size != 0 || disp/a.size >= 1<<12 {
		panic("offset outside of the reach of a load")
	}
	from := strings.Replace(fmt.Sprintf("x%d", base), "x31", "sp", 1)
	t.word(a.at|uint32(disp/a.size<<10|base<<5|v), "%s %s%d, [%s, #%d]", a.name, a.register, v, from, disp)
}

// base returns the base register of an address, and the offset from there without the index.
func (t *translator) base(m operand.Mem) (register, disp int) {
	switch m.Base {
	case reg.StaticBase:
		return constants, m.Disp + t.at[m.Symbol.Name]
	case reg.StackPointer:
		return stack, m.Disp + locals
	}
	return number(m.Base), m.Disp
}

// name returns what Go's assembler calls the base register of an address.
func name(register int) string {
	if register == stack {
		return "RSP"
	}
	return fmt.Sprintf("R%d", register)
}

func log2(scale uint8) int { return map[uint8]int{1: 0, 2: 1, 4: 2, 8: 3}[scale] }

// vectorInstruction translates an instruction on vectors, and reports whether it is one.
func (t *translator) vectorInstruction(i *ir.Instruction) bool {
	o := i.Operands
	if code, ok := direct[i.Opcode]; ok {
		if i.Opcode == "VXORPS" && o[0] == o[1] {
			t.zero(number(o[2]))
			return true
		}
		y := t.vector(o[0], scratch)
		t.put(code, number(o[2]), t.vector(o[1], scratch2), y)
		return true
	}
	if strings.HasPrefix(i.Opcode, "VFM") || strings.HasPrefix(i.Opcode, "VFN") {
		return t.product(i)
	}
	switch i.Opcode {
	case "VMINPS", "VMAXPS":
		d, x, y := number(o[2]), number(o[1]), t.vector(o[0], scratch2)
		if i.Opcode == "VMAXPS" {
			t.put(fcmgt, scratch, x, y)
		} else {
			t.put(fcmgt, scratch, y, x)
		}
		t.choose(d, scratch, x, y)
	case "VCMPPS":
		t.compare(uint8(o[0].(operand.U8)), number(o[3]), number(o[2]), t.vector(o[1], scratch2))
	case "VBLENDVPS":
		t.choose(number(o[3]), number(o[0]), t.vector(o[1], scratch), number(o[2]))
	case "VSQRTPS":
		t.put(fsqrt, number(o[1]), number(o[0]))
	case "VCVTDQ2PS":
		t.put(scvtf, number(o[1]), number(o[0]))
	case "VSHUFPS", "VPSRAD", "VPSLLD":
		t.shuffleOrShift(i.Opcode, int(o[0].(operand.U8)), o[1:])
	case "VADDSS":
		d, x, y := number(o[2]), number(o[1]), number(o[0])
		t.word(0x1e202800|uint32(y<<16|x<<5|d), "fadd s%d, s%d, s%d", d, x, y)
	case fmla:
		x, y, d := number(o[0]), number(o[1]), number(o[2])
		t.word(0x4f801000|uint32(y<<16|x<<5|d), "fmla v%d.4s, v%d.4s, v%d.s[0]", d, x, y)
	case "VZEROUPPER":
	default:
		return t.move(i)
	}
	return true
}

// product translates a product with one rounding that does not add to its result register.
func (t *translator) product(i *ir.Instruction) bool {
	z, y, d := t.vector(i.Operands[0], scratch), number(i.Operands[1]), number(i.Operands[2])
	code := direct["VFMADD231PS"]
	switch i.Opcode {
	case "VFMADD213PS": // d y + z
		t.copy(scratch, z)
	case "VFNMADD213PS": // z - d y
		t.copy(scratch, z)
		code = direct["VFNMADD231PS"]
	case "VFMSUB213PS": // d y - z
		t.put(fneg, scratch, z)
	default:
		return false
	}
	t.put(code, scratch, y, d)
	t.copy(d, scratch)
	return true
}

// compare writes x predicate y: all bits of a lane, or none.
func (t *translator) compare(predicate uint8, d, x, y int) {
	switch predicate {
	case less:
		t.put(fcmgt, d, y, x)
	case more:
		t.put(fcmgt, d, x, y)
	case notLess:
		t.put(fcmge, d, x, y)
	case equal:
		t.put(fcmeq, d, x, y)
	case notEqual:
		t.put(fcmgt, scratch, x, y)
		t.put(fcmgt, d, y, x)
		t.put(orr, d, d, scratch)
	case notLessSame:
		t.put(fcmge, d, y, x)
		t.put(not, d, d)
	case ordered:
		t.put(fcmge, scratch, x, y)
		t.put(fcmgt, d, y, x)
		t.put(orr, d, d, scratch)
	default:
		panic("no translation of a predicate")
	}
}

// shuffleOrShift translates an instruction with a constant.
func (t *translator) shuffleOrShift(opcode string, constant int, o []op) {
	x, d := number(o[0]), number(o[len(o)-1])
	switch {
	case opcode == "VPSRAD":
		t.word(0x4f000400|uint32((64-constant)<<16|x<<5|d), "sshr v%d.4s, v%d.4s, #%d", d, x, constant)
	case opcode == "VPSLLD":
		t.word(0x4f005400|uint32((32+constant)<<16|x<<5|d), "shl v%d.4s, v%d.4s, #%d", d, x, constant)
	case constant == 0x44: // the low halves of two vectors
		t.put(zip1d, d, number(o[1]), x)
	case constant == 0xee: // the high halves
		t.put(zip2d, d, number(o[1]), x)
	case constant == 0x88: // the lanes 0 and 2 of two vectors
		t.put(uzp1, d, number(o[1]), x)
	case constant == 0xdd: // the lanes 1 and 3
		t.put(uzp2, d, number(o[1]), x)
	case constant == 0x0e: // the high half, twice
		t.word(0x4e180400|uint32(x<<5|d), "dup v%d.2d, v%d.d[1]", d, x)
	case constant == 0x01: // lane 1 in the first lane
		t.word(0x4e0c0400|uint32(x<<5|d), "dup v%d.4s, v%d.s[1]", d, x)
	default:
		panic("no translation of a shuffle")
	}
}

// move translates loads, stores and copies.
func (t *translator) move(i *ir.Instruction) bool {
	o := i.Operands
	from, load := o[0].(operand.Mem)
	to, store := o[len(o)-1].(operand.Mem)
	switch i.Opcode {
	case "VMOVUPS", "VMOVDQU":
		switch {
		case load:
			t.access(loadQ, number(o[1]), from)
		case store:
			t.access(storeQ, number(o[0]), to)
		default:
			t.copy(number(o[1]), number(o[0]))
		}
	case "VMOVSS":
		if load {
			t.access(loadS, number(o[1]), from)
		} else {
			t.access(storeS, number(o[0]), to)
		}
	case "VBROADCASTSS":
		d, base := number(o[1]), 0
		if !load {
			t.word(0x4e040400|uint32(number(o[0])<<5|d), "dup v%d.4s, v%d.s[0]", d, number(o[0]))
			break
		}
		base = t.pointer(from)
		t.word(0x4d40c800|uint32(base<<5|d), "ld1r {v%d.4s}, [x%d]", d, base)
	case loadFirst:
		t.first(number(o[1]), from, number(o[2]), loadQ, loadD, loadS, 0x4d408000, "ld1")
	case storeFirst:
		t.first(number(o[1]), to, number(o[0]), storeQ, storeD, storeS, 0x4d008000, "st1")
	default:
		return false
	}
	return true
}

// pointer returns a register with the address of an operand.
func (t *translator) pointer(m operand.Mem) int {
	base, disp := t.base(m)
	if m.Index == nil && disp == 0 {
		return base
	}
	t.addressOf(m, address)
	return address
}

// first loads or stores the first 0 to 4 numbers of a vector; lane is the instruction for lane 2.
func (t *translator) first(count int, m operand.Mem, v int, four, two, one access, lane uint32, name string) {
	t.labels++
	label := func(name string) string { return fmt.Sprintf("%s_%d", name, t.labels) }
	base := t.pointer(m)
	put := func(a access) {
		t.word(a.at|uint32(base<<5|v), "%s %s%d, [x%d]", a.name, a.register, v, base)
	}
	t.line("TBNZ $2, R%d, %s", count, label("four"))
	t.line("TBZ $1, R%d, %s", count, label("fewer"))
	put(two)
	t.line("TBZ $0, R%d, %s", count, label("end"))
	t.line("ADD $8, R%d, R%d", base, value)
	t.word(lane|uint32(value<<5|v), "%s {v%d.s}[2], [x%d]", name, v, value)
	t.line("JMP %s", label("end"))
	fmt.Fprintf(t, "%s:\n", label("fewer"))
	if name == "ld1" {
		t.zero(v)
	}
	t.line("TBZ $0, R%d, %s", count, label("end"))
	put(one)
	t.line("JMP %s", label("end"))
	fmt.Fprintf(t, "%s:\n", label("four"))
	put(four)
	fmt.Fprintf(t, "%s:\n", label("end"))
}

// general returns the name of the general register that holds an operand. It loads an operand that is in memory.
func (t *translator) general(o op) string {
	switch o := o.(type) {
	case operand.Mem:
		t.line("MOVD %d(R%d), R%d", o.Disp, number(o.Base), value)
		return fmt.Sprintf("R%d", value)
	case reg.Register:
		return fmt.Sprintf("R%d", number(o))
	}
	return o.Asm()
}

// generalInstruction translates an instruction on general registers, and reports whether it is one.
func (t *translator) generalInstruction(i *ir.Instruction) bool {
	o := i.Operands
	name := map[string]string{"ADDQ": "ADD", "SUBQ": "SUBS", "ANDQ": "AND", "SHLQ": "LSL", "SHRQ": "LSR",
		"DECQ": "SUBS $1,"}[i.Opcode]
	condition, isMove := strings.CutPrefix(i.Opcode, "CMOVQ")
	switch {
	case name != "" && len(o) == 1:
		t.line("%s R%d", name, number(o[0]))
	case name != "":
		t.line("%s %s, R%d", name, t.general(o[0]), number(o[1]))
	case i.IsTerminal:
		t.line("RET")
	case i.IsBranch && i.IsConditional:
		t.line("B%s %s", i.Opcode[1:], o[0].Asm())
	case i.IsBranch:
		t.line("JMP %s", o[0].Asm())
	case isMove:
		t.line("CSEL %s, R%d, R%d, R%d", condition, number(o[0]), number(o[1]), number(o[1]))
	case i.Opcode == "MOVQ":
		t.load(o[0], number(o[1]))
	case i.Opcode == "LEAQ":
		t.addressOf(o[0].(operand.Mem), number(o[1]))
	case i.Opcode == "XORQ" && o[0] == o[1]:
		t.line("MOVD ZR, R%d", number(o[1]))
	case i.Opcode == "CMPQ":
		x := t.general(o[0])
		t.line("CMP %s, %s", t.general(o[1]), x)
	case i.Opcode == "TESTQ":
		t.line("TST %s, %s", t.general(o[0]), t.general(o[1]))
	default:
		return false
	}
	return true
}

// load reads a parameter, a field, a register or a constant.
func (t *translator) load(from op, d int) {
	m, ok := from.(operand.Mem)
	switch {
	case ok && m.Base == reg.FramePointer:
		t.line("MOVD %s, R%d", m.Asm(), d)
	case ok:
		t.line("MOVD %d(R%d), R%d", m.Disp, number(m.Base), d)
	default:
		t.line("MOVD %s, R%d", t.general(from), d)
	}
}

// addressOf puts an address into a register.
func (t *translator) addressOf(m operand.Mem, d int) {
	base, disp := t.base(m)
	if m.Index == nil {
		t.line("ADD $%d, %s, R%d", disp, name(base), d)
		return
	}
	t.line("ADD R%d<<%d, R%d, R%d", number(m.Index), log2(m.Scale), base, d)
	if disp != 0 {
		t.line("ADD $%d, R%d", disp, d)
	}
}
