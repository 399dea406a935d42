// Products whose left factor has few numbers that are not 0.

package kernel

import (
	"math"
	"math/bits"
	"unsafe"
)

// Sparse is the left factor of a SparseGemm: for each row a word with the count of its terms, and the terms. A term has
// the bits of a number in its low half, and the offset of its row of the right factor, in bytes, in its high half.
type Sparse []uint64

// MaxSparseOffset is the largest offset of a row of the right factor.
const MaxSparseOffset = math.MaxUint32

// AppendRow appends a row without its zeros: the numbers of x from number from to before number to. NonZero has written
// flags of x. The rows of the right factor are stride bytes apart.
func (s Sparse) AppendRow(x []float32, flags []uint64, from, to, stride int) Sparse {
	start := len(s)
	s = append(s, 0)
	for group := from / 64; group*64 < to; group++ {
		left := flags[group] &^ (1<<max(0, from-64*group) - 1)
		if outside := 64*(group+1) - to; outside > 0 {
			left = left << outside >> outside
		}
		for ; left != 0; left &= left - 1 {
			i := 64*group + bits.TrailingZeros64(left)
			s = append(s, uint64((i-from)*stride)<<32|uint64(math.Float32bits(x[i])))
		}
	}
	s[start] = uint64(len(s) - start - 1)
	return s
}

func nonZero(a *Args) {
	flags := unsafe.Slice((*uint64)(a.Dst), a.M)
	for m := range flags {
		flags[m] = 0
		for n, x := range numbers(unsafe.Add(a.A, 64*elem*m), 64) {
			magnitude := math.Float32bits(x) << 1
			flags[m] |= uint64((magnitude|-magnitude)>>31) << n
		}
	}
}

func sparseGemm(a *Args) {
	if a.N <= 0 {
		return
	}
	words := unsafe.Slice((*uint64)(a.A), a.K)
	for m := range a.M {
		dst := row(a.Dst, m, a.SD, a.N)
		if a.C == nil {
			clear(dst)
		} else {
			copy(dst, row(a.C, m, a.SC, a.N))
		}
		count := words[0]
		for _, term := range words[1 : 1+count] {
			x := math.Float32frombits(uint32(term))
			for n, y := range numbers(unsafe.Add(a.B, term>>32), a.N) {
				dst[n] = fma(x, y, dst[n])
			}
		}
		words = words[1+count:]
	}
}
