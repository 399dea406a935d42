// Calls of all kernels for tests: shapes, memory with random numbers, and comparison of bits.

package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"unsafe"
)

// sizes are all lengths of tails, with and without whole vectors before them.
func sizes() []int {
	var list []int
	for n := range 41 {
		list = append(list, n)
	}
	return append(list, 63, 64, 65, 100, 129)
}

// calls returns the sizes and strides with which the tests run a kernel. Its pointers are nil, except that C of Gemm
// and Gemv is not nil if the call has it.
func calls(k Kernel) (list []Args) {
	var some byte
	add := func(m, n, inner int) {
		gap := elem * ((m + n) % 3) // some strides are larger than rows
		a := Args{M: m, N: n, K: inner, SD: elem*n + gap, SA: elem*n + gap, SB: elem*n + 2*gap, SC: elem * n, TA: elem}
		switch k {
		case Transpose:
			a.SD = elem*m + gap
		case CopyBlocks:
			a.SD, a.TD, a.TA = elem*n+gap, m*(elem*n+gap)+2*gap, m*(elem*n+gap)+gap
		case MaxOfFour:
			a.SA, a.Then = 2*elem*n+gap, m/2%2*ThenRelu
		case MaxOfFourGrad:
			a.SA, a.SD, a.SB, a.Then = 2*elem*n+gap, 2*elem*n+2*gap, elem*n+gap, m/2%2*ThenMask
		case Gemm:
			a.SA = elem*inner + gap
			if n%2 == 1 { // a transposed
				a.SA, a.TA = elem, elem*m+gap
			}
			if m%4 == 0 { // one row of initial values
				a.SC = 0
			}
			a.Then = (m + n + inner) / 2 % 3
		case SparseGemm:
			a.TD = inner
			a.K = len(sparse(&a))
		}
		if k.layout().b == perRow && n%2 == 1 {
			a.SB = elem
		}
		if k.layout().a == perRow && n%4 == 1 {
			a.SA = 0
		}
		if (m+n)%3 != 0 || k == Gemm && a.Then == ThenMask {
			a.C = unsafe.Pointer(&some)
		}
		list = append(list, a)
	}
	for _, n := range sizes() {
		switch {
		case k == Gemm:
			for _, inner := range []int{0, 1, 5} {
				add(n, 7, inner)
				add(n, 35, inner)
				add(3, n, inner)
				add(13, n, inner)
			}
			add(1, n, 17)
			add(2, n, 17)
			add(5, n, 17)
		case k == SparseGemm:
			for _, inner := range []int{0, 1, 9} {
				add(7, n, inner)
				add(1, 2*n, inner)
				add(n, 19, inner)
			}
		case k == CopyBlocks:
			for _, inner := range []int{0, 1, 3, 5} {
				add(3, n, inner)
				add(n%7, n, inner)
			}
		case k.layout().dst == line && k.layout().a == line:
			add(1, n, 0)
		default:
			for _, m := range []int{0, 1, 2, 9} {
				add(m, n, 0)
				add(n, m, 0)
			}
		}
	}
	return list
}

func (k Kernel) layout() *layout { return &kernels[k] }

// name describes a call in messages.
func name(s *Set, k Kernel, a *Args) string {
	return fmt.Sprintf("%s %v M=%d N=%d K=%d SD=%d SA=%d SB=%d SC=%d TA=%d initial=%v", s.Name, k, a.M, a.N, a.K,
		a.SD, a.SA, a.SB, a.SC, a.TA, a.C != nil)
}

// pool is random numbers of all kinds: of the size of 1, of any size, and of special values.
func pool() []float32 {
	r := rand.New(rand.NewPCG(1, 2))
	special := []float32{0, float32(math.Copysign(0, -1)), 1, -1, float32(math.Inf(1)), float32(math.Inf(-1)),
		float32(math.NaN()), math.MaxFloat32, math.SmallestNonzeroFloat32, -0x1p-126, 89, -104}
	list := make([]float32, 1<<14)
	for i := range list {
		switch { // groups of 64, so that many sums are finite
		case i/64%4 == 3 && i%5 == 0:
			list[i] = math.Float32frombits(r.Uint32())
		case i/64%8 == 2 && i%7 == 0:
			list[i] = special[r.IntN(len(special))]
		default:
			list[i] = float32(r.NormFloat64())
		}
	}
	return list
}

// memory is the operands of one call, in the order dst, a, b, c.
type memory [4][]float32

// margin is how many numbers surround an operand, to notice writes out of its bounds.
const margin = 32

// allocate returns memory for a call, and its arguments with pointers into it.
func allocate(k Kernel, a Args, numbers []float32) (memory, Args) {
	var mem memory
	d, x, y, z := k.Extent(&a)
	for i, bytes := range []int{d, x, y, z} {
		at := (i*4111 + a.M*64 + a.N*129 + a.K*77) % (len(numbers) / 2)
		mem[i] = slices.Clone(numbers[at : at+bytes/elem+2*margin])
	}
	a = mem.point(a)
	writeSparse(k, &a)
	return mem, a
}

// point returns the arguments with pointers into the memory.
func (mem *memory) point(a Args) Args {
	a.Dst, a.A, a.B = unsafe.Pointer(&mem[0][margin]), unsafe.Pointer(&mem[1][margin]), unsafe.Pointer(&mem[2][margin])
	if a.C != nil {
		a.C = unsafe.Pointer(&mem[3][margin])
	}
	return a
}

// sparse returns the left factor of a SparseGemm: every third number is 0, and the last of a row is not.
func sparse(a *Args) (s Sparse) {
	s = make(Sparse, 0, a.M*(a.TD+1))
	row := make([]float32, a.TD)
	for m := range a.M {
		copy(row, factors()[a.N+m*a.TD:])
		for i := range row {
			if (m+i)%3 == 0 && i < len(row)-1 {
				row[i] = 0
			}
		}
		s = appendRow(s, row, a.SB)
	}
	return s
}

// factors is one pool for all calls of sparse.
var factors = sync.OnceValue(pool)

// writeSparse writes the left factor of a SparseGemm.
func writeSparse(k Kernel, a *Args) {
	if _, bytes, _, _ := k.Extent(a); k == SparseGemm && bytes > 0 {
		copy(unsafe.Slice((*uint64)(a.A), a.K), sparse(a))
	}
}

// different returns the first place with other bits, or -1. All NaN are the same.
func different(got, want []float32) int {
	for i := range want {
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) && (got[i] == got[i] || want[i] == want[i]) {
			return i
		}
	}
	return -1
}

// needsC reports whether a kernel cannot run without C.
func needsC(k Kernel) bool {
	return k.layout().c != absent && k != Gemm && k != Gemv && k != SparseGemm
}

// eachCall runs f for all kernels and calls.
func eachCall(f func(k Kernel, a Args)) {
	for k := range NumKernels {
		for _, a := range calls(k) {
			if a.C != nil || !needsC(k) {
				f(k, a)
			}
		}
	}
}

// TestBits compares the results of all sets, bit by bit, and what surrounds them.
func TestBits(t *testing.T) {
	sets, numbers := Sets(), pool()
	plain := sets[len(sets)-1]
	eachCall(func(k Kernel, a Args) {
		want, args := allocate(k, a, numbers)
		plain.Run[k](&args)
		for _, s := range sets[:len(sets)-1] {
			got, args := allocate(k, a, numbers)
			s.Run[k](&args)
			for i := range got {
				if at := different(got[i], want[i]); at >= 0 {
					t.Fatalf("%s: operand %d has %v at %d, plain Go has %v", name(s, k, &a), i, got[i][at], at-margin,
						want[i][at])
				}
			}
		}
	})
}

// TestInPlace stores results over each operand for which that is allowed.
func TestInPlace(t *testing.T) {
	numbers := pool()
	for _, s := range Sets() {
		eachCall(func(k Kernel, a Args) {
			for i := 1; i <= 3; i++ {
				if !inPlace(k, &a, i) {
					continue
				}
				want, args := allocate(k, a, numbers)
				before := slices.Clone(want[i])
				s.Run[k](&args)
				got, _ := allocate(k, a, numbers)
				copy(got[0], before)
				args = got.point(a)
				*[]*unsafe.Pointer{nil, &args.A, &args.B, &args.C}[i] = args.Dst
				s.Run[k](&args)
				d, _, _, _ := k.Extent(&a)
				checkRows(t, name(s, k, &a)+" in place", k, &a, got[0][margin:][:d/elem], want[0][margin:][:d/elem])
			}
		})
	}
}

// inPlace reports whether the result of a call may be stored over an operand: 1, 2 or 3 for a, b or c.
func inPlace(k Kernel, a *Args, operand int) bool {
	l := k.layout()
	if k == Gemm || k == SparseGemm {
		return operand == 3 && a.C != nil && a.SC == a.SD
	}
	one := k <= MulGreater || k == Softmax || k == LogSoftmax
	switch operand {
	case 1:
		return one && l.a == l.dst && (l.a == line || a.SA == a.SD)
	case 2:
		return one && l.b == l.dst && (l.b == line || a.SB == a.SD)
	}
	return false
}

// checkRows compares results without the numbers between rows.
func checkRows(t *testing.T, what string, k Kernel, a *Args, got, want []float32) {
	t.Helper()
	rows, columns, stride := 1, len(want), 0
	if k.layout().dst == matrix && len(want) > 0 {
		rows, columns, stride = a.M, a.N, a.SD/elem
	}
	for m := range rows {
		if at := different(got[m*stride:m*stride+columns], want[m*stride:m*stride+columns]); at >= 0 {
			t.Fatalf("%s: row %d has %v at %d, want %v", what, m, got[m*stride+at], at, want[m*stride+at])
		}
	}
}

// TestParts divides calls along each axis.
func TestParts(t *testing.T) {
	numbers := pool()
	for _, s := range Sets() {
		eachCall(func(k Kernel, a Args) {
			for axis, size := range map[Split]int{ByRows: a.M, ByColumns: a.N} {
				if k.Split()&axis == 0 || size < 2 {
					continue
				}
				want, args := allocate(k, a, numbers)
				s.Run[k](&args)
				got, args := allocate(k, a, numbers)
				for _, part := range [][2]int{{size / 3, size}, {0, size / 3}} {
					p := k.Part(&args, axis, part[0], part[1])
					s.Run[k](&p)
				}
				if at := different(got[0], want[0]); at >= 0 {
					t.Fatalf("%s in parts of axis %d: %v at %d, whole %v", name(s, k, &a), axis, got[0][at], at-margin,
						want[0][at])
				}
			}
		})
	}
}

// TestLargeProducts compares products whose right factor is divided into blocks.
func TestLargeProducts(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for i, d := range [][3]int{
		{25, 1000, 150}, {14, 300, 1100}, {13, 140000, 1}, {30, 260, 513}, {1, 2000, 150}, {5, 300, 513}, {4, 100, 1400},
		{25, 600, 150}, {14, 300, 1100}, {30, 129, 513}, {5, 300, 513},
	} {
		m, k, n := d[0], d[1], d[2]
		a := Args{M: m, N: n, K: k, SD: elem * n, SA: elem * k, TA: elem, SB: elem * n}
		if i > 6 { // the left factor is transposed
			a.SA, a.TA = elem, elem*m
		}
		a.C, a.SC, a.Then = unsafe.Pointer(&m), i%2*a.SD, i%3
		numbers := make([]float32, 4*max(m*k, k*n, m*n)+1<<20)
		for i := range numbers {
			numbers[i] = float32(r.NormFloat64())
		}
		var want []float32
		for _, s := range slices.Backward(Sets()) {
			mem, args := allocate(Gemm, a, numbers)
			s.Run[Gemm](&args)
			if want == nil {
				want = mem[0]
			} else if at := different(mem[0], want); at >= 0 {
				t.Errorf("%s: %v at %d, plain Go has %v", name(s, Gemm, &a), mem[0][at], at-margin, want[at])
			}
		}
	}
}

// TestTable checks that each kernel has a name and a function in each set.
func TestTable(t *testing.T) {
	names := make(map[string]bool)
	for k := range NumKernels {
		if names[k.String()] || k.String() == "" {
			t.Errorf("kernel %d: the name %q is not its own", k, k)
		}
		names[k.String()] = true
		for _, s := range Sets() {
			if s.Run[k] == nil {
				t.Errorf("%s has no kernel %v", s.Name, k)
			}
		}
	}
}

func TestChoose(t *testing.T) {
	for _, s := range Sets() {
		if chosen, err := Choose(s.Name); err != nil || chosen.Name != s.Name {
			t.Errorf("Choose(%q) = %v, %v", s.Name, chosen, err)
		}
	}
	if s, err := Choose(""); err != nil || s.Name != Sets()[0].Name || Best().Name != s.Name {
		t.Errorf(`Choose("") = %v, %v`, s, err)
	}
	if _, err := Choose("sse"); err == nil || !strings.Contains(err.Error(), "MIPLC_NATIVE=sse") {
		t.Errorf("Choose of an unknown set: %v", err)
	}
}
