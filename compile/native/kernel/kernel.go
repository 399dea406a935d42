// Package kernel contains the loops over numbers that a plan of compile/native consists of, for AVX-512, for AVX2
// with FMA, for NEON, and in plain Go.
//
// All sets of kernels give the same bits (except the payloads of NaN), whatever the processor and however a call is
// divided: they fix the order of their sums, and their formulas down to the rounding of each operation. All numbers
// are float32.
//
//   - Products (Gemm, SparseGemm) add in ascending order of the inner index with fused multiply-add, from the initial
//     value.
//   - Sums over a row (SumRows, Gemv, Softmax) add element i to lane i mod 16, then add the lanes l and l+8, l and l+4,
//     l and l+2, and the last two.
//   - Sums over a column (SumCols) add in ascending order, from 0.
//   - NaN in any number that a result depends on gives NaN, also in Max and Clamp. The exceptions are the comparisons
//     Greater and GreaterOrEqual.
//
// A kernel does not check its arguments. Extent returns the memory that a call reads and writes, so that a plan can
// check its calls once, when it is made. The kernels up to MulGreater, Softmax and LogSoftmax may store their result
// over an operand of the same extent and strides, and products over their initial value. Results must not overlap
// operands in other ways.
package kernel

// Kernel is the number of a kernel in a Set.
type Kernel uint8

// The kernels. Sums over no elements are 0. If the result has no elements, a kernel reads and writes nothing.
const (
	Copy     Kernel = iota // dst[i] = a[i], for i < N, like all kernels of one operand
	Neg                    // -a[i]
	Exp                    // e to the a[i]
	Log                    // natural logarithm: -Inf of 0, NaN of negative numbers
	Sqrt                   // square root
	Abs                    // |a[i]|
	Sign                   // -1, 1, or a[i] if it is 0
	Tanh                   // hyperbolic tangent
	Sigmoid                // 1 / (1 + exp(-a[i]))
	Softplus               // log(1 + exp(a[i]))
	Relu                   // a[i] if it is positive, else 0
	Erf                    // error function
	Clamp                  // a[i] limited to [b[0], c[0]]

	// dst[m,n] = f(a, b), M rows of N numbers with the strides SD, SA and SB, which may be 0 for operands. V is a row of
	// N numbers, S one number for each row.
	AddVV
	AddVS
	AddSV
	SubVV
	SubVS
	SubSV
	MulVV
	MulVS
	MulSV
	DivVV
	DivVS
	DivSV
	MaxVV
	MaxVS
	MaxSV
	MinVV
	MinVS
	MinSV
	GreaterVV // 1 if a > b, else 0
	GreaterVS
	GreaterSV
	GreaterOrEqualVV // 1 if a >= b, else 0
	GreaterOrEqualVS
	GreaterOrEqualSV

	ScaledAdd // dst[i] = c[0] a[i] + b[i], with one rounding, for i < N
	ScaledSub // dst[i] = b[i] - c[0] a[i], with one rounding, for i < N
	// dst[i] = a[i] times 1 if b[i] > c[0], else times 0, for i < N: the gradient of a ReLU
	MulGreater

	SumRows // dst[m] = sum over n of a[m,n], for M rows of N numbers with the stride SA
	SumCols // dst[n] = sum over m of a[m,n]
	MaxCols // dst[n] = maximum over m of a[m,n]; -Inf without rows
	Gemv    // dst[m] = c[0] + sum over n of a[m,n] b[n]; C may be nil, which is 0

	Softmax    // dst[m,n] = exp(a[m,n]) / sum over i of exp(a[m,i]), strides SD and SA; NaN if the maximum is infinite
	LogSoftmax // logarithm of Softmax

	CopyRows  // dst[m,n] = a[m,n], for M rows of N numbers with the strides SD and SA
	Transpose // dst[n,m] = a[m,n]; SA is the stride of the M rows of a, SD that of the N rows of dst

	// dst[k,m,n] = a[k,m,n], for K blocks of M rows of N numbers: the rows have the strides SD and SA, the blocks TD and
	// TA.
	CopyBlocks
	// dst[m,n] = first maximum of the window of the rows 2m and 2m+1 and the columns 2n and 2n+1 of a. NaN is the maximum.
	// Then may be ThenRelu.
	MaxOfFour
	// dst has b[m,n] where the window (m, n) of a has its first maximum, else 0, for 2M rows of 2N numbers of dst and a.
	// With ThenMask, b[m,n] is multiplied by 1 if that maximum > 0, else by 0.
	MaxOfFourGrad

	// Bit n of dst[m], a word of 64 bits, is 1 if a[64m+n] is not 0, else 0, for m < M.
	NonZero

	// dst[i] = 0 or a scale, at random, for i < N. A points to the Random that says which.
	Dropout

	// dst[m,n] = c[m,n] + sum over k of a[m,k] b[k,n]: the element (m, k) of a is m SA + k TA bytes from the first, rows
	// of b, dst and c are SB, SD and SC bytes apart. C may be nil, which is 0; SC = 0 adds one row to all. Gemm
	// applies the function Then to the sums and stores the results.
	Gemm
	// dst[m,n] = c[m,n] + sum over k of a[m,k] b[k,n], leaving out the elements of a that are 0: a is a Sparse of M rows
	// and K words, b has TD rows, and dst, b and c have the strides SD, SB and SC. C may be nil, which is 0.
	SparseGemm

	NumKernels
)

// layout describes the operands of a kernel.
type layout struct {
	name         string
	dst, a, b, c operand
	split        Split
}

// kernels is the table of all kernels.
var kernels = [NumKernels]layout{
	Copy: lineOf("Copy"), Neg: lineOf("Neg"), Exp: lineOf("Exp"), Log: lineOf("Log"), Sqrt: lineOf("Sqrt"),
	Abs: lineOf("Abs"), Sign: lineOf("Sign"), Tanh: lineOf("Tanh"), Sigmoid: lineOf("Sigmoid"),
	Softplus: lineOf("Softplus"),
	Relu:     lineOf("Relu"), Erf: lineOf("Erf"),
	Clamp: {"Clamp", line, line, single, single, ByColumns},

	AddVV: rowsOf("AddVV", matrix, matrix), AddVS: rowsOf("AddVS", matrix, perRow), AddSV: rowsOf("AddSV", perRow, matrix),
	SubVV: rowsOf("SubVV", matrix, matrix), SubVS: rowsOf("SubVS", matrix, perRow), SubSV: rowsOf("SubSV", perRow, matrix),
	MulVV: rowsOf("MulVV", matrix, matrix), MulVS: rowsOf("MulVS", matrix, perRow), MulSV: rowsOf("MulSV", perRow, matrix),
	DivVV: rowsOf("DivVV", matrix, matrix), DivVS: rowsOf("DivVS", matrix, perRow), DivSV: rowsOf("DivSV", perRow, matrix),
	MaxVV: rowsOf("MaxVV", matrix, matrix), MaxVS: rowsOf("MaxVS", matrix, perRow), MaxSV: rowsOf("MaxSV", perRow, matrix),
	MinVV: rowsOf("MinVV", matrix, matrix), MinVS: rowsOf("MinVS", matrix, perRow), MinSV: rowsOf("MinSV", perRow, matrix),
	GreaterVV: rowsOf("GreaterVV", matrix, matrix), GreaterVS: rowsOf("GreaterVS", matrix, perRow),
	GreaterSV:        rowsOf("GreaterSV", perRow, matrix),
	GreaterOrEqualVV: rowsOf("GreaterOrEqualVV", matrix, matrix),
	GreaterOrEqualVS: rowsOf("GreaterOrEqualVS", matrix, perRow),
	GreaterOrEqualSV: rowsOf("GreaterOrEqualSV", perRow, matrix),

	ScaledAdd: {"ScaledAdd", line, line, line, single, ByColumns},
	ScaledSub: {"ScaledSub", line, line, line, single, ByColumns},

	MulGreater: {"MulGreater", line, line, line, single, ByColumns},

	SumRows: {"SumRows", column, matrix, absent, absent, ByRows},
	SumCols: {"SumCols", line, matrix, absent, absent, ByColumns},
	MaxCols: {"MaxCols", line, matrix, absent, absent, ByColumns},
	Gemv:    {"Gemv", column, matrix, line, single, ByRows},

	Softmax:       {"Softmax", matrix, matrix, absent, absent, ByRows},
	LogSoftmax:    {"LogSoftmax", matrix, matrix, absent, absent, ByRows},
	CopyRows:      {"CopyRows", matrix, matrix, absent, absent, ByRows | ByColumns},
	Transpose:     {"Transpose", turned, matrix, absent, absent, ByRows | ByColumns},
	CopyBlocks:    {"CopyBlocks", blocksDst, blocksA, absent, absent, 0},
	MaxOfFour:     {"MaxOfFour", matrix, quads, absent, absent, 0},
	MaxOfFourGrad: {"MaxOfFourGrad", quads, quads, matrix, absent, 0},
	NonZero:       {"NonZero", words, groups, absent, absent, 0},
	Dropout:       {"Dropout", line, random, absent, absent, 0},
	Gemm:          {"Gemm", matrix, left, right, matrix, ByRows | ByColumns},
	SparseGemm:    {"SparseGemm", matrix, terms, gathered, matrix, ByColumns},
}

// lineOf describes a function of each of N numbers.
func lineOf(name string) layout { return layout{name, line, line, absent, absent, ByColumns} }

// rowsOf describes a function of two operands with M rows.
func rowsOf(name string, a, b operand) layout {
	return layout{name, matrix, a, b, absent, ByRows | ByColumns}
}

// String returns the name of the kernel.
func (k Kernel) String() string { return kernels[k].name }
