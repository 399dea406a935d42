// Half-precision numbers.

package ndarray

import (
	"encoding/binary"
	"math"
	"slices"
	"testing"
)

// InfiniteHalf finds the same number as a search in the converted numbers.
func TestInfiniteHalf(t *testing.T) {
	for _, kind := range []Encoding{{Float, 2, false}, {Float, 2, true}, {BFloat, 2, false}, {BFloat, 2, true}} {
		order := binary.ByteOrder(binary.LittleEndian)
		if kind.Swap {
			order = binary.BigEndian
		}
		for bits := range 1 << 16 {
			var numbers [11]float32
			bytes := make([]byte, 2*len(numbers))
			for i := range numbers {
				order.PutUint16(bytes[2*i:], uint16(bits*(2*i+1)))
			}
			order.PutUint16(bytes[2*(bits%len(numbers)):], uint16(bits))
			kind.Floats(numbers[:], bytes)
			want := slices.IndexFunc(numbers[:], func(v float32) bool {
				return math.IsNaN(float64(v)) ||
					math.IsInf(float64(v), 0)
			})
			if got := kind.InfiniteHalf(bytes); got != want {
				t.Fatalf("%+v: number %d of % x, expected %d", kind, got, bytes, want)
			}
		}
	}
}

func BenchmarkInfiniteHalf(b *testing.B) {
	bytes := make([]byte, 20<<20)
	b.SetBytes(int64(len(bytes)))
	for b.Loop() {
		Encoding{Float, 2, false}.InfiniteHalf(bytes)
	}
}
