// The kernels in plain Go: the reference of the others, and the only ones on processors without others.

package kernel

import (
	"math"
	"slices"
	"unsafe"
)

// goSet returns the kernels in plain Go.
func goSet() *Set {
	s := &Set{Name: "go"}
	s.Run[Copy] = func(a *Args) { copy(numbers(a.Dst, a.N), numbers(a.A, a.N)) }
	for k, f := range map[Kernel]func(float32) float32{
		Neg: func(x float32) float32 { return -x }, Exp: exp, Log: log, Abs: abs, Sign: sign, Tanh: tanh, Sigmoid: sigmoid,
		Softplus: softplus, Relu: relu, Erf: erf, Sqrt: func(x float32) float32 { return float32(math.Sqrt(float64(x))) },
	} {
		s.Run[k] = each(f)
	}
	s.Run[Clamp] = clamp
	for vv, f := range map[Kernel]func(x, y float32) float32{
		AddVV: func(x, y float32) float32 { return x + y }, SubVV: func(x, y float32) float32 { return x - y },
		MulVV: func(x, y float32) float32 { return x * y }, DivVV: func(x, y float32) float32 { return x / y },
		MaxVV: maximum, MinVV: minimum, GreaterVV: greater, GreaterOrEqualVV: greaterOrEqual,
	} {
		s.Run[vv], s.Run[vv+1], s.Run[vv+2] = eachPair(f, 1, 1), eachPair(f, 1, 0), eachPair(f, 0, 1)
	}
	s.Run[ScaledAdd], s.Run[ScaledSub], s.Run[MulGreater] = scaled(1), scaled(-1), mulGreater
	s.Run[SumRows], s.Run[Gemv] = sumRows, gemv
	s.Run[SumCols] = columns(0, func(x, y float32) float32 { return x + y })
	s.Run[MaxCols] = columns(float32(math.Inf(-1)), maximum)
	s.Run[Softmax], s.Run[LogSoftmax] = softmax, logSoftmax
	s.Run[CopyRows], s.Run[Transpose], s.Run[Gemm] = copyRows, transpose, gemm
	s.Run[CopyBlocks], s.Run[NonZero], s.Run[SparseGemm] = copyBlocks, nonZero, sparseGemm
	s.Run[Dropout] = dropout
	s.Run[MaxOfFour], s.Run[MaxOfFourGrad] = maxOfFour, maxOfFourGrad
	return s
}

// numbers returns the n numbers at p.
func numbers(p unsafe.Pointer, n int) []float32 { return unsafe.Slice((*float32)(p), n) }

// row returns the n numbers of row i, of rows that are stride bytes apart.
func row(p unsafe.Pointer, i, stride, n int) []float32 {
	if n <= 0 {
		return nil // the pointer may leave its object
	}
	return numbers(unsafe.Add(p, i*stride), n)
}

// each returns a kernel that applies f to each number.
func each(f func(float32) float32) func(*Args) {
	return func(a *Args) {
		dst := numbers(a.Dst, a.N)
		for i, x := range numbers(a.A, a.N) {
			dst[i] = f(x)
		}
	}
}

// eachPair returns a kernel that applies f to two operands. Steps are 1 for a row of numbers, 0 for one number.
func eachPair(f func(x, y float32) float32, stepA, stepB int) func(*Args) {
	return func(a *Args) {
		if a.N <= 0 {
			return
		}
		for m := range a.M {
			dst := row(a.Dst, m, a.SD, a.N)
			x, y := row(a.A, m, a.SA, 1+stepA*(a.N-1)), row(a.B, m, a.SB, 1+stepB*(a.N-1))
			x0, y0 := x[0], y[0] // dst may overwrite them
			for n := range dst {
				if stepA == 1 {
					x0 = x[n]
				}
				if stepB == 1 {
					y0 = y[n]
				}
				dst[n] = f(x0, y0)
			}
		}
	}
}

func clamp(a *Args) {
	if a.N <= 0 {
		return
	}
	dst, low, high := numbers(a.Dst, a.N), numbers(a.B, 1)[0], numbers(a.C, 1)[0]
	for i, x := range numbers(a.A, a.N) {
		if high < x {
			x = high
		}
		if low > x {
			x = low
		}
		dst[i] = x
	}
}

// scaled returns the kernel of dst = b + sign c a.
func scaled(sign float32) func(*Args) {
	return func(a *Args) {
		if a.N <= 0 {
			return
		}
		dst, y, c := numbers(a.Dst, a.N), numbers(a.B, a.N), sign*numbers(a.C, 1)[0]
		for i, x := range numbers(a.A, a.N) {
			dst[i] = fma(c, x, y[i])
		}
	}
}

func mulGreater(a *Args) {
	if a.N <= 0 {
		return
	}
	dst, y, c := numbers(a.Dst, a.N), numbers(a.B, a.N), numbers(a.C, 1)[0]
	for i, x := range numbers(a.A, a.N) {
		dst[i] = x * greater(y[i], c)
	}
}

// lanes are the partial results of a reduction over a row.
type lanes [16]float32

// combine joins lanes l and l+8, then l and l+4, l and l+2, and the last two.
func (l *lanes) combine(f func(x, y float32) float32) float32 {
	for half := len(l) / 2; half > 0; half /= 2 {
		for i := range half {
			l[i] = f(l[i], l[i+half])
		}
	}
	return l[0]
}

// sum adds the lanes.
func (l *lanes) sum() float32 {
	return l.combine(func(x, y float32) float32 { return x + y })
}

func sumRows(a *Args) {
	dst := numbers(a.Dst, a.M)
	for m := range dst {
		var l lanes
		for n, x := range row(a.A, m, a.SA, a.N) {
			l[n%len(l)] += x
		}
		dst[m] = l.sum()
	}
}

func gemv(a *Args) {
	dst, y := numbers(a.Dst, a.M), numbers(a.B, a.N)
	for m := range dst {
		var l lanes
		for n, x := range row(a.A, m, a.SA, a.N) {
			l[n%len(l)] = fma(x, y[n], l[n%len(l)])
		}
		var initial float32
		if a.C != nil {
			initial = numbers(a.C, 1)[0]
		}
		dst[m] = initial + l.sum()
	}
}

// columns returns a kernel that combines the rows of a matrix one after the other.
func columns(initial float32, f func(x, y float32) float32) func(*Args) {
	return func(a *Args) {
		dst := numbers(a.Dst, a.N)
		for n := range dst {
			dst[n] = initial
		}
		for m := range a.M {
			for n, x := range row(a.A, m, a.SA, a.N) {
				dst[n] = f(dst[n], x)
			}
		}
	}
}

// expRow stores exp(x - top) of a row, unless dst is nil, and returns the largest number and the sum of the results.
// NaN in x makes the sum NaN.
func expRow(dst, x []float32) (top, sum float32) {
	var l lanes
	top = float32(math.Inf(-1))
	for _, v := range x {
		if v > top {
			top = v
		}
	}
	for n, v := range x {
		e := exp(v - top)
		l[n%len(l)] += e
		if dst != nil {
			dst[n] = e
		}
	}
	return top, l.sum()
}

func softmax(a *Args) {
	for m := range a.M {
		dst := row(a.Dst, m, a.SD, a.N)
		_, sum := expRow(dst, row(a.A, m, a.SA, a.N))
		for n := range dst {
			dst[n] /= sum
		}
	}
}

func logSoftmax(a *Args) {
	for m := range a.M {
		dst, x := row(a.Dst, m, a.SD, a.N), row(a.A, m, a.SA, a.N)
		top, sum := expRow(nil, x)
		sum = log(sum)
		for n, v := range x {
			dst[n] = v - top - sum
		}
	}
}

func copyRows(a *Args) {
	for m := range a.M {
		copy(row(a.Dst, m, a.SD, a.N), row(a.A, m, a.SA, a.N))
	}
}

func transpose(a *Args) {
	for m := range a.M {
		for n, x := range row(a.A, m, a.SA, a.N) {
			row(a.Dst, n, a.SD, m+1)[m] = x
		}
	}
}

func gemm(a *Args) {
	if a.N <= 0 {
		return
	}
	for m := range a.M {
		dst, mask := row(a.Dst, m, a.SD, a.N), []float32(nil)
		switch {
		case a.Then == ThenMask:
			mask = slices.Clone(row(a.C, m, a.SC, a.N)) // dst may overwrite it
			clear(dst)
		case a.C == nil:
			clear(dst)
		default:
			copy(dst, row(a.C, m, a.SC, a.N))
		}
		for k := range a.K {
			x := numbers(unsafe.Add(a.A, m*a.SA+k*a.TA), 1)[0]
			for n, y := range row(a.B, k, a.SB, a.N) {
				dst[n] = fma(x, y, dst[n])
			}
		}
		for n, x := range dst {
			switch a.Then {
			case ThenRelu:
				dst[n] = relu(x)
			case ThenMask:
				dst[n] = x * greater(mask[n], 0)
			}
		}
	}
}

func copyBlocks(a *Args) {
	block := *a
	if a.M <= 0 || a.N <= 0 {
		return
	}
	for k := range a.K {
		block.Dst, block.A = unsafe.Add(a.Dst, k*a.TD), unsafe.Add(a.A, k*a.TA)
		copyRows(&block)
	}
}

// exceeds reports whether y, which comes after x, is the maximum of both. NaN exceeds all numbers.
func exceeds(y, x float32) bool { return y > x || y != y && x == x }

// firstOfFour returns the first maximum of a window: its row and column, from 0.
func firstOfFour(top, bottom []float32) (row, column int) {
	b, d := 0, 0
	if exceeds(top[1], top[0]) {
		b = 1
	}
	if exceeds(bottom[1], bottom[0]) {
		d = 1
	}
	if exceeds(bottom[d], top[b]) {
		return 1, d
	}
	return 0, b
}

func maxOfFour(a *Args) {
	for m := range a.M {
		window := [2][]float32{row(a.A, 2*m, a.SA, 2*a.N), row(a.A, 2*m+1, a.SA, 2*a.N)}
		dst := row(a.Dst, m, a.SD, a.N)
		for n := range dst {
			y, x := firstOfFour(window[0][2*n:], window[1][2*n:])
			dst[n] = window[y][2*n+x]
			if a.Then == ThenRelu {
				dst[n] = relu(dst[n])
			}
		}
	}
}

func maxOfFourGrad(a *Args) {
	for m := range a.M {
		top, bottom := row(a.A, 2*m, a.SA, 2*a.N), row(a.A, 2*m+1, a.SA, 2*a.N)
		dst := [2][]float32{row(a.Dst, 2*m, a.SD, 2*a.N), row(a.Dst, 2*m+1, a.SD, 2*a.N)}
		for n, d := range row(a.B, m, a.SB, a.N) {
			y, x := firstOfFour(top[2*n:], bottom[2*n:])
			clear(dst[0][2*n : 2*n+2])
			clear(dst[1][2*n : 2*n+2])
			if a.Then == ThenMask {
				d *= greater([2][]float32{top, bottom}[y][2*n+x], 0)
			}
			dst[y][2*n+x] = d
		}
	}
}
