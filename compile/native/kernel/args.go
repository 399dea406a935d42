// Arguments of kernels, the memory that a call touches, and its division among threads.

package kernel

import "unsafe"

// Args are the arguments of a kernel: memory that the caller keeps alive, sizes in elements and strides in bytes.
// The description of each Kernel says which of them it uses. Strides are not negative. C may be nil where its
// description says so.
type Args struct {
	Dst, A, B, C       unsafe.Pointer
	M, N, K            int
	SD, SA, SB, SC, TA int
	TD                 int
	Then               int // the function that Gemm or pooling applies to its results: 0 (none), ThenRelu or ThenMask

	// Set by Gemm for its parts: for each inner index a part prefetches an address, which begins Ahead bytes from A and
	// moves by AheadStep. It may be outside of the operands.
	Ahead, AheadStep int
}

// The functions of Args.Then.
const (
	ThenRelu = 1 // the ReLU
	ThenMask = 2 // a product with 1 where c[m,n] > 0, else with 0; the sums then start from 0 and not from c
)

// elem is the size of an element in bytes.
const elem = 4

// Split is a set of the axes along which a call can be divided.
type Split uint8

const (
	ByRows    Split = 1 << iota // parts of M
	ByColumns                   // parts of N
)

// operand says which elements of an operand a kernel reads or writes.
type operand uint8

const (
	absent    operand = iota
	single            // one number
	line              // N consecutive numbers
	column            // M consecutive numbers
	matrix            // M rows of N numbers
	perRow            // M rows of one number
	turned            // N rows of M numbers
	left              // M rows of K numbers, which are TA bytes apart
	right             // K rows of N numbers
	blocksDst         // K blocks, which are TD bytes apart, of M rows of N numbers
	blocksA           // K blocks, which are TA bytes apart, of M rows of N numbers
	quads             // 2M rows of 2N numbers
	words             // M words of 64 bits
	groups            // M groups of 64 numbers
	terms             // the K words of a Sparse
	gathered          // TD rows of N numbers
	random            // a Random
)

// extent returns the bytes from the first to the last element of an operand with rows that are stride bytes apart.
func (o operand) extent(a *Args, stride int) int {
	rows, columns, step := 1, 1, elem
	blocks, apart := 1, 0
	switch o {
	case absent:
		rows = 0
	case line:
		columns = a.N
	case column:
		columns = a.M
	case matrix:
		rows, columns = a.M, a.N
	case perRow:
		rows = a.M
	case turned:
		rows, columns = a.N, a.M
	case left:
		rows, columns, step = a.M, a.K, a.TA
	case right:
		rows, columns = a.K, a.N
	case blocksDst:
		rows, columns, blocks, apart = a.M, a.N, a.K, a.TD
	case blocksA:
		rows, columns, blocks, apart = a.M, a.N, a.K, a.TA
	case random:
		columns = int(unsafe.Sizeof(Random{})) / elem
	case quads:
		rows, columns = 2*a.M, 2*a.N
	case words:
		columns = 2 * a.M
	case groups:
		columns = 64 * a.M
	case terms:
		columns = a.K * int(unsafe.Sizeof(Sparse{}[0])) / elem
	case gathered:
		rows, columns = a.TD, a.N
	}
	if rows <= 0 || columns <= 0 || blocks <= 0 {
		return 0
	}
	return (blocks-1)*apart + (rows-1)*stride + (columns-1)*step + elem
}

// offset returns the bytes to the first element of an operand from row or column number at of the call on.
func (o operand) offset(axis Split, at, stride int) int {
	switch {
	case axis == ByRows && (o == matrix || o == perRow || o == left), axis == ByColumns && o == turned:
		return at * stride
	case axis == ByRows && (o == column || o == turned),
		axis == ByColumns && (o == line || o == matrix || o == right || o == gathered):
		return at * elem
	}
	return 0
}

// Extent returns how many bytes from each pointer the kernel reads or writes with these sizes. If the kernel does
// nothing, because a size is 0, all are 0.
func (k Kernel) Extent(a *Args) (dst, fromA, fromB, fromC int) {
	l := &kernels[k]
	if dst = l.dst.extent(a, a.SD); dst == 0 {
		return 0, 0, 0, 0
	}
	if a.C != nil {
		fromC = l.c.extent(a, a.SC)
	}
	return dst, l.a.extent(a, a.SA), l.b.extent(a, a.SB), fromC
}

// Split returns the axes along which a call may be divided among threads without changing a bit of the result.
func (k Kernel) Split() Split { return kernels[k].split }

// Part returns the arguments that compute the rows or columns from number from to before number to of a call.
// The kernel must have axis, ByRows or ByColumns, in its Split.
func (k Kernel) Part(a *Args, axis Split, from, to int) Args {
	l, part := &kernels[k], *a
	dst, fromA, fromB, fromC := k.Extent(a)
	part.Dst = move(a.Dst, dst, l.dst.offset(axis, from, a.SD))
	part.A = move(a.A, fromA, l.a.offset(axis, from, a.SA))
	part.B = move(a.B, fromB, l.b.offset(axis, from, a.SB))
	part.C = move(a.C, fromC, l.c.offset(axis, from, a.SC))
	if axis == ByRows {
		part.M = to - from
	} else {
		part.N = to - from
	}
	return part
}

// move adds an offset to the pointer to an operand of some bytes. Without bytes the pointer stays, so that it does not
// leave its object.
func move(p unsafe.Pointer, bytes, offset int) unsafe.Pointer {
	if bytes == 0 {
		return p
	}
	return unsafe.Add(p, offset)
}
