// Products whose left factor has few numbers that are not 0.

package kernel

import (
	"math"
	"unsafe"
)

// Sparse is the left factor of a SparseGemm: for each row a word with the count of its terms, and the terms. A term has
// the bits of a number in its low half, and the offset of its row of the right factor, in bytes, in its high half.
type Sparse []uint64

// MaxSparseOffset is the largest offset of a row of the right factor.
const MaxSparseOffset = math.MaxUint32

// AppendRow appends a row of n numbers, which are step apart in x, without its zeros. The rows of the right factor are
// stride bytes apart. s must have the capacity for n+1 more words.
func (s Sparse) AppendRow(x []float32, n, step, stride int) Sparse {
	start := len(s)
	row := s[start : start+n+1]
	if n == 0 {
		row[0] = 0
		return s[:start+1]
	}
	_ = x[(n-1)*step]
	from, first := unsafe.Pointer(unsafe.SliceData(x)), unsafe.Pointer(unsafe.SliceData(row))
	at, end, offset := uintptr(0), uintptr(8), uint64(0)
	for range n {
		bits := *(*uint32)(unsafe.Add(from, at))
		// The next number is written over a zero. A branch would be hard to predict.
		*(*uint64)(unsafe.Add(first, end)) = offset<<32 | uint64(bits)
		magnitude := bits << 1
		end += uintptr((magnitude|-magnitude)>>31) << 3
		at += uintptr(step) * elem
		offset += uint64(stride)
	}
	row[0] = uint64(end/8 - 1)
	return s[:start+int(end/8)]
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
