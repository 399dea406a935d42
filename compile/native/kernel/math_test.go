// Functions of one number: accuracy, and the results of special values.

package kernel

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
	"unsafe"
)

// function is a kernel of one operand and what it computes, in float64.
type function struct {
	kernel Kernel
	want   func(float64) float64
	ulps   float64 // largest error in units of the last place of the result
}

var functions = []function{
	{Copy, func(x float64) float64 { return x }, 0},
	{Neg, func(x float64) float64 { return -x }, 0},
	{Exp, math.Exp, 1.1},
	{Log, math.Log, 1},
	{Sqrt, math.Sqrt, 0.5},
	{Abs, math.Abs, 0},
	{Sign, func(x float64) float64 {
		if x == 0 || math.IsNaN(x) {
			return x
		}
		return math.Copysign(1, x)
	}, 0},
	{Tanh, math.Tanh, 2},
	{Sigmoid, func(x float64) float64 {
		if x < 0 {
			return math.Exp(x) / (1 + math.Exp(x))
		}
		return 1 / (1 + math.Exp(-x))
	}, 2.5},
	{Softplus, func(x float64) float64 { return math.Max(x, 0) + math.Log1p(math.Exp(-math.Abs(x))) }, 2},
	{Relu, func(x float64) float64 {
		if x <= 0 {
			return 0
		}
		return x
	}, 0},
	{Erf, math.Erf, 1.1},
}

// ulps returns the error of a number in units of the last place, which are constant below the smallest normal number.
func ulps(got float32, want float64) float64 {
	rounded := float32(want)
	if got == rounded || got != got && want != want {
		return 0
	}
	if got != got || want != want || math.IsInf(float64(got), 0) != math.IsInf(float64(rounded), 0) {
		return math.Inf(1)
	}
	_, exponent := math.Frexp(want)
	return math.Abs(float64(got)-want) / math.Ldexp(1, max(exponent-24, -149))
}

// apply runs a kernel of one operand.
func apply(s *Set, k Kernel, x []float32) []float32 {
	y := make([]float32, len(x))
	s.Run[k](&Args{Dst: unsafe.Pointer(&y[0]), A: unsafe.Pointer(&x[0]), N: len(x)})
	return y
}

// TestAccuracy computes each function of numbers from all over float32, and of more numbers near 1.
func TestAccuracy(t *testing.T) {
	var x []float32
	for bits := uint32(0); bits < math.MaxUint32-30011; bits += 30011 {
		x = append(x, math.Float32frombits(bits))
	}
	for i := range 60000 {
		x = append(x, float32(i-30000)/300, float32(i-30000)/30000)
	}
	special := []float64{0, math.Copysign(0, -1), 1, -1, math.Inf(1), math.Inf(-1), math.NaN(), math.MaxFloat32,
		-math.MaxFloat32, math.SmallestNonzeroFloat32, -math.SmallestNonzeroFloat32, 0x1p-126, 0x1p-127, 88.72283,
		88.722839, 88.73, -103.2, -103.3, -103.97, -103.98, -104, -87.4, 1e30, -1e30, 0.92773, 0.92774, 4, -4}
	for _, v := range special {
		x = append(x, float32(v))
	}
	sets := Sets()
	for _, f := range functions {
		plain := apply(sets[len(sets)-1], f.kernel, x)
		worst, at := 0.0, float32(0)
		for i, y := range plain {
			if u := ulps(y, f.want(float64(x[i]))); u > worst {
				worst, at = u, x[i]
			}
		}
		if worst > f.ulps {
			t.Errorf("%v(%g) has an error of %.2f ulp, more than %.2f", f.kernel, at, worst, f.ulps)
		}
		t.Logf("%v: largest error %.2f ulp at %g", f.kernel, worst, at)
		for _, s := range sets[:len(sets)-1] {
			if i := different(apply(s, f.kernel, x), plain); i >= 0 {
				t.Errorf("%s: %v(%g) = %g, plain Go has %g", s.Name, f.kernel, x[i], apply(s, f.kernel, x)[i], plain[i])
			}
		}
	}
}

// TestZeros checks the signs of zeros, which numbers that are compared do not show.
func TestZeros(t *testing.T) {
	negative := float32(math.Copysign(0, -1))
	for _, s := range Sets() {
		for _, c := range []struct {
			k          Kernel
			x, y, want float32
		}{
			{Relu, negative, 0, 0}, {Sign, negative, 0, negative}, {Tanh, negative, 0, negative}, {Erf, negative, 0, negative},
			{Sqrt, negative, 0, negative}, {Neg, 0, 0, negative}, {Abs, negative, 0, 0}, {MaxVV, negative, 0, 0},
			{MaxVV, 0, negative, 0}, {MinVV, negative, 0, negative}, {MinVV, 0, negative, negative}, {GreaterVV, 0, negative, 0},
		} {
			if got := pair(s, c.k, c.x, c.y); math.Float32bits(got) != math.Float32bits(c.want) {
				t.Errorf("%s: %v(%v, %v) = %v, want %v", s.Name, c.k, c.x, c.y, got, c.want)
			}
		}
	}
}

// pair runs a kernel of one or two operands on one number of each.
func pair(s *Set, k Kernel, x, y float32) (z float32) {
	s.Run[k](&Args{Dst: unsafe.Pointer(&z), A: unsafe.Pointer(&x), B: unsafe.Pointer(&y), M: 1, N: 1})
	return z
}

// TestPairs compares the kernels of two operands with float64, special values included.
func TestPairs(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	values := []float32{0, 1, -1, 0.1, 3e38, -3e38, 1e-40, inf, -inf, nan}
	for _, s := range Sets() {
		for k, f := range map[Kernel]func(x, y float64) float64{
			AddVV: func(x, y float64) float64 { return x + y }, SubVV: func(x, y float64) float64 { return x - y },
			MulVV: func(x, y float64) float64 { return x * y }, DivVV: func(x, y float64) float64 { return x / y },
			MaxVV: func(x, y float64) float64 { return max(x, y) }, MinVV: func(x, y float64) float64 { return min(x, y) },
			GreaterVV: func(x, y float64) float64 {
				if x > y {
					return 1
				}
				return 0
			},
			GreaterOrEqualVV: func(x, y float64) float64 {
				if x >= y {
					return 1
				}
				return 0
			},
		} {
			for _, x := range values {
				for _, y := range values {
					want := float32(f(float64(x), float64(y)))
					for form := range Kernel(3) { // VV, VS, SV
						if got := pair(s, k+form, x, y); got != want && (got == got || want == want) {
							t.Errorf("%s: %v(%v, %v) = %v, want %v", s.Name, k+form, x, y, got, want)
						}
					}
				}
			}
		}
	}
}

func TestClamp(t *testing.T) {
	low, high := float32(-1), float32(2)
	x := []float32{-3, -1, 0, 2, 5, float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN())}
	want := []float32{-1, -1, 0, 2, 2, 2, -1, x[7]}
	for _, s := range Sets() {
		y := make([]float32, len(x))
		s.Run[Clamp](&Args{Dst: unsafe.Pointer(&y[0]), A: unsafe.Pointer(&x[0]), B: unsafe.Pointer(&low),
			C: unsafe.Pointer(&high), N: len(x)})
		if i := different(y, want); i >= 0 {
			t.Errorf("%s: %v limited to [-1, 2] is %v", s.Name, x[i], y[i])
		}
	}
}

// TestFMA compares the product and sum with one rounding with exact arithmetic.
func TestFMA(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	number := func() float32 { return math.Float32frombits(r.Uint32()) }
	for i := range 200000 {
		x, y, z := number(), number(), number()
		if i%2 == 0 { // z near the product, or half a unit of its last place
			z = float32(-float64(x) * float64(y))
			if i%4 == 0 {
				z *= 0x1p24
			}
		}
		if i%8 == 1 {
			z = math.Float32frombits(r.Uint32() % (1 << 23))
			y = 0x1p-120 / x
		}
		product := float64(x) * float64(y)
		if math.IsNaN(product) || math.IsInf(product, 0) || math.IsNaN(float64(z)) || math.IsInf(float64(z), 0) {
			continue
		}
		exact := new(big.Float).SetPrec(2000).SetFloat64(product)
		want, _ := exact.Add(exact, big.NewFloat(float64(z))).Float32()
		if got := fma(x, y, z); got != want {
			t.Fatalf("fma(%g, %g, %g) = %g, want %g", x, y, z, got, want)
		}
	}
}

// TestSoftmax compares rows with float64. A row with NaN, with +Inf or with only -Inf is NaN.
func TestSoftmax(t *testing.T) {
	inf := float32(math.Inf(1))
	nan := float32(math.NaN())
	rows := [][]float32{{0}, {1, 2, 3}, {1000, 1000, -1000, 999}, {-inf, 0, 1}, {inf, 1}, {-inf, -inf}, {1, nan, 2},
		{-1e30, 1e30}, {nan, inf}}
	for _, s := range Sets() {
		for _, x := range append(rows, pool()[:40], make([]float32, 37)) {
			y, logs := make([]float32, len(x)), make([]float32, len(x))
			args := Args{Dst: unsafe.Pointer(&y[0]), A: unsafe.Pointer(&x[0]), M: 1, N: len(x)}
			s.Run[Softmax](&args)
			args.Dst = unsafe.Pointer(&logs[0])
			s.Run[LogSoftmax](&args)
			top, sum := math.Inf(-1), 0.0
			for _, v := range x {
				top = max(top, float64(v))
			}
			for _, v := range x {
				sum += math.Exp(float64(v) - top)
			}
			for i, v := range x {
				want := math.Exp(float64(v)-top) / sum
				wantLog := float64(v) - top - math.Log(sum)
				if !near(y[i], want) || !near(logs[i], wantLog) {
					t.Errorf("%s: softmax of %v has %v and %v at %d, want %v and %v", s.Name, x, y[i], logs[i], i, want, wantLog)
				}
			}
		}
	}
}

func near(got float32, want float64) bool {
	return got == float32(want) || got != got && want != want ||
		math.Abs(float64(got)-want) <= 1e-6*max(1e-3, math.Abs(want)) || math.Abs(want) > 1 && ulps(got, want) < 3
}

// TestSums compares sums and products with float64.
func TestSums(t *testing.T) {
	x := make([]float32, 20*37)
	r := rand.New(rand.NewPCG(7, 8))
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	const m, n, k = 20, 37, 16
	a, b, c := x, x[40:], x[100:]
	for _, s := range Sets() {
		for kernel, want := range map[Kernel]func(i, j int) float64{
			SumRows: func(i, _ int) float64 { return sum(n, func(l int) float32 { return a[i*n+l] }) },
			SumCols: func(_, j int) float64 { return sum(m, func(l int) float32 { return a[l*n+j] }) },
			Gemv: func(i, _ int) float64 {
				return float64(c[0]) + sum(n, func(l int) float32 { return a[i*n+l] }, func(l int) float32 { return b[l] })
			},
			Gemm: func(i, j int) float64 {
				return float64(c[j]) + sum(k, func(l int) float32 { return a[i*k+l] }, func(l int) float32 { return b[l*n+j] })
			},
		} {
			dst := make([]float32, m*n)
			args := Args{Dst: unsafe.Pointer(&dst[0]), A: unsafe.Pointer(&a[0]), B: unsafe.Pointer(&b[0]),
				C: unsafe.Pointer(&c[0]), M: m, N: n, K: k, SD: elem * n, SA: elem * n, SB: elem * n, TA: elem}
			if kernel == Gemm {
				args.SA = elem * k
			}
			s.Run[kernel](&args)
			for p := range dst {
				i, j := p/n, p%n
				switch kernel.layout().dst {
				case column:
					i, j = p, 0
				case line:
					i, j = 0, p
				}
				if i >= m || j >= n {
					break
				}
				if math.Abs(float64(dst[p])-want(i, j)) > 1e-5 {
					t.Fatalf("%s: %v has %v at %d, want %v", s.Name, kernel, dst[p], p, want(i, j))
				}
			}
		}
	}
}

// sum adds products of the factors in float64.
func sum(n int, factors ...func(l int) float32) (total float64) {
	for l := range n {
		p := 1.0
		for _, f := range factors {
			p *= float64(f(l))
		}
		total += p
	}
	return total
}
