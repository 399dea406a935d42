// Element types of files.

package ndarray

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"sync"

	"github.com/x448/float16"
)

// Kind is the kind of the numbers in a file.
type Kind byte

// Kinds of numbers. Float has 2, 4 or 8 bytes, BFloat has 2, Int and Uint have 1, 2, 4
// or 8.
const (
	Float  Kind = 'f'
	BFloat Kind = 'b' // bfloat16
	Int    Kind = 'i'
	Uint   Kind = 'u'
)

// Encoding describes how a file stores a number.
type Encoding struct {
	Kind Kind
	Size int  // bytes
	Swap bool // big-endian
}

func (t Encoding) String() string {
	name := map[Kind]string{Float: "float", BFloat: "bfloat", Int: "int", Uint: "uint"}[t.Kind]
	return fmt.Sprintf("%s%d", name, 8*t.Size)
}

// Valid reports whether Floats can convert such numbers.
func (t Encoding) Valid() bool {
	switch t.Kind {
	case Float:
		return t.Size == 2 || t.Size == 4 || t.Size == 8
	case BFloat:
		return t.Size == 2
	case Int, Uint:
		return t.Size == 1 || t.Size == 2 || t.Size == 4 || t.Size == 8
	}
	return false
}

// halves contains the float32 of every float16. The table is several times as fast as a
// conversion.
var halves = sync.OnceValue(func() *[1 << 16]float32 {
	t := new([1 << 16]float32)
	for i := range t {
		t[i] = float16.Frombits(uint16(i)).Float32()
	}
	return t
})

// Floats converts len(to) numbers of a valid type to float32. from has their bytes.
func (t Encoding) Floats(to []float32, from []byte) {
	from = from[:len(to)*t.Size]
	switch {
	case t.Kind == Float && t.Size == 4 && !t.Swap:
		for i := range to {
			to[i] = math.Float32frombits(binary.LittleEndian.Uint32(from[4*i:]))
		}
	case t.Kind == Float && t.Size == 2 && !t.Swap:
		table := halves()
		for i := range to {
			to[i] = table[binary.LittleEndian.Uint16(from[2*i:])]
		}
	case t.Kind == BFloat && !t.Swap:
		for i := range to {
			to[i] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(from[2*i:])) << 16)
		}
	default:
		for i := range to {
			to[i] = float[float32](t, from[i*t.Size:])
		}
	}
}

// Half reports whether t is float16 or bfloat16.
func (t Encoding) Half() bool { return t.Size == 2 && (t.Kind == Float || t.Kind == BFloat) }

// InfiniteHalf returns the index of the first number that is NaN or infinite, or -1. t is float16 or
// bfloat16.
func (t Encoding) InfiniteHalf(of []byte) int {
	exponent := uint16(0x7c00)
	if t.Kind == BFloat {
		exponent = 0x7f80
	}
	// Four numbers at a time: adding its lowest bit to an exponent of ones gives the sign bit.
	const each = 0x0001_0001_0001_0001
	mask, lowest := each*uint64(exponent), each*uint64(exponent&-exponent)
	i := 0
	for ; i+8 <= len(of); i += 8 {
		four := binary.LittleEndian.Uint64(of[i:])
		if t.Swap {
			four = bits.ReverseBytes64(four)
		}
		if (four&mask+lowest)&(each<<15) != 0 {
			break
		}
	}
	for i /= 2; i < len(of)/2; i++ {
		if uint16(t.bits(of[2*i:]))&exponent == exponent {
			return i
		}
	}
	return -1
}

// Float converts the number at the start of b.
func (t Encoding) Float(b []byte) float64 { return float[float64](t, b) }

// Int converts the number of kind Int or Uint at the start of b. Numbers above the largest int64
// become negative.
func (t Encoding) Int(b []byte) int64 {
	bits, unused := t.bits(b), 64-8*t.Size
	if t.Kind == Int {
		return int64(bits<<unused) >> unused
	}
	return int64(bits)
}

func float[T float32 | float64](t Encoding, b []byte) T {
	bits := t.bits(b)
	switch {
	case t.Kind == Float && t.Size == 2:
		return T(halves()[bits])
	case t.Kind == Float && t.Size == 4:
		return T(math.Float32frombits(uint32(bits)))
	case t.Kind == Float:
		return T(math.Float64frombits(bits))
	case t.Kind == BFloat:
		return T(math.Float32frombits(uint32(bits) << 16))
	case t.Kind == Uint:
		return T(bits)
	}
	return T(t.Int(b))
}

func (t Encoding) bits(b []byte) (bits uint64) {
	for i, x := range b[:t.Size] {
		if t.Swap {
			i = t.Size - 1 - i
		}
		bits |= uint64(x) << (8 * i)
	}
	return bits
}
