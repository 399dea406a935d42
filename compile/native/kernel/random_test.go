// Known answers of the random numbers, and their shares of zeros.

package kernel

import (
	"math"
	"slices"
	"testing"
	"unsafe"
)

// TestPhilox compares with the known answers of Random123, the library of the authors.
func TestPhilox(t *testing.T) {
	const all = 1<<32 - 1
	zeros, ones := [4]uint32{}, [4]uint32{all, all, all, all}
	pi, piKey := [4]uint32{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, [2]uint32{0xa4093822, 0x299f31d0}
	for _, c := range []struct {
		counter [4]uint32
		key     [2]uint32
		rounds  int
		want    [4]uint32
	}{
		{zeros, [2]uint32{}, 7, [4]uint32{0x5f6fb709, 0x0d893f64, 0x4f121f81, 0x4f730a48}},
		{ones, [2]uint32{all, all}, 7, [4]uint32{0x5207ddc2, 0x45165e59, 0x4d8ee751, 0x8c52f662}},
		{pi, piKey, 7, [4]uint32{0x4dfccaba, 0x190a87f0, 0xc47362ba, 0xb6b5242a}},
		{zeros, [2]uint32{}, 10, [4]uint32{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
		{ones, [2]uint32{all, all}, 10, [4]uint32{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
		{pi, piKey, 10, [4]uint32{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
	} {
		if got := philox(c.counter, c.key, c.rounds); got != c.want {
			t.Errorf("%d rounds of %x with the key %x: %08x, want %08x", c.rounds, c.counter, c.key, got, c.want)
		}
	}
}

// TestDropoutInParts checks that parts of the numbers are those of the whole.
func TestDropoutInParts(t *testing.T) {
	for _, s := range Sets() {
		draw := func(first, n int) []float32 {
			r, dst := NewRandom([2]uint32{5, 6}, 0.5, 2), make([]float32, n)
			r.First = uint32(first / 4)
			s.Run[Dropout](&Args{Dst: unsafe.Pointer(&dst[0]), A: unsafe.Pointer(&r), N: n})
			return dst
		}
		whole := draw(0, 1000)
		for first := 0; first < 1000; first += 192 {
			n := min(192, 1000-first)
			if !slices.Equal(draw(first, n), whole[first:first+n]) {
				t.Errorf("%s: the numbers from %d on differ", s.Name, first)
			}
		}
	}
}

// TestShares checks the share of zeros, and that other streams and keys give independent numbers.
func TestShares(t *testing.T) {
	draw := func(r Random) []float32 {
		dst := make([]float32, 1<<16)
		Best().Run[Dropout](&Args{Dst: unsafe.Pointer(&dst[0]), A: unsafe.Pointer(&r), N: len(dst)})
		return dst
	}
	for _, p := range []float64{0, 1e-9, 0.1, 1. / 3, 0.5, 0.9, 1 - 0x1p-40} {
		r := NewRandom([2]uint32{1, 2}, p, 3)
		first := draw(r)
		check := func(what string, p float64, zero func(i int) bool) {
			count, n := 0., float64(len(first))
			for i := range first {
				if zero(i) {
					count++
				}
			}
			if off := math.Abs(count-n*p) - 5*math.Sqrt(n*p*(1-p)); off > 1 {
				t.Errorf("probability %g: %v zeros of %v %s", p, count, n, what)
			}
		}
		check("", p, func(i int) bool {
			if first[i] != 0 && first[i] != 3 {
				t.Fatalf("probability %g: %v", p, first[i])
			}
			return first[i] == 0
		})
		others := []Random{r, r, r, r, r}
		for i := range r.Stream {
			others[i].Stream[i]++
		}
		for i := range r.Key {
			others[3+i].Key[i]++
		}
		for _, other := range others {
			second := draw(other)
			check("in both", p*p, func(i int) bool { return first[i] == 0 && second[i] == 0 })
		}
	}
}
