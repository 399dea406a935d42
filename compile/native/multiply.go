// Products of matrices outside of plans.

package native

import (
	"fmt"
	"unsafe"

	"github.com/miplc/miplc/compile/native/kernel"
	"github.com/miplc/miplc/internal/resources"
)

// multiplyPart is the minimum number of multiplications of a thread.
const multiplyPart = 4 << 20

// Multiply computes c = a b for row-major matrices: c is [m, n], the inner size is k. With ta (tb), a (b) is stored
// transposed. It uses at most the given number of threads, which does not change a bit of the result.
func Multiply(set *kernel.Set, threads int, ta, tb bool, m, n, k int, a, b, c []float32) {
	if len(a) != m*k || len(b) != k*n || len(c) != m*n {
		panic(fmt.Sprintf("bug: matrices of %d, %d and %d numbers in a product of %d x %d x %d", len(a), len(b), len(c), m,
			k, n))
	}
	if len(a) == 0 || len(b) == 0 {
		clear(c)
		return
	}
	start := func(x []float32) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(x)) }
	if tb {
		turned := make([]float32, k*n)
		set.Run[kernel.Transpose](&kernel.Args{Dst: start(turned), A: start(b), M: n, N: k, SA: 4 * k, SD: 4 * n})
		b = turned
	}
	args := kernel.Args{Dst: start(c), A: start(a), B: start(b), M: m, N: n, K: k, SD: 4 * n, SB: 4 * n, SA: 4 * k, TA: 4}
	if ta {
		args.SA, args.TA = 4, 4*m
	}
	parts := max(1, min(threads, m, m*n*k/multiplyPart))
	resources.Each(parts, parts, func(i int) {
		part := kernel.Gemm.Part(&args, kernel.ByRows, m*i/parts, m*(i+1)/parts)
		set.Run[kernel.Gemm](&part)
	})
}
