package ndarray

import (
	"encoding/binary"
	"fmt"
	"math"
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

// Number describes how a file stores a number.
type Number struct {
	Kind Kind
	Size int  // bytes
	Swap bool // big-endian
}

func (t Number) String() string {
	name := map[Kind]string{Float: "float", BFloat: "bfloat", Int: "int", Uint: "uint"}[t.Kind]
	return fmt.Sprintf("%s%d", name, 8*t.Size)
}

// Valid reports whether Floats can convert such numbers.
func (t Number) Valid() bool {
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

// halves has the float32 of every float16: a table is several times as fast as the
// conversion.
var halves = sync.OnceValue(func() *[1 << 16]float32 {
	t := new([1 << 16]float32)
	for i := range t {
		t[i] = float16.Frombits(uint16(i)).Float32()
	}
	return t
})

// Floats converts len(to) numbers of a valid type to float32. from has their bytes.
func (t Number) Floats(to []float32, from []byte) {
	from = from[:len(to)*t.Size]
	if t.Swap && t.Size > 1 {
		t.swapped(to, from)
		return
	}
	switch {
	case t.Kind == Float && t.Size == 4:
		for i := range to {
			to[i] = math.Float32frombits(binary.LittleEndian.Uint32(from[4*i:]))
		}
	case t.Kind == Float && t.Size == 2:
		table := halves()
		for i := range to {
			to[i] = table[binary.LittleEndian.Uint16(from[2*i:])]
		}
	case t.Kind == BFloat:
		for i := range to {
			to[i] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(from[2*i:])) << 16)
		}
	default:
		for i := range to {
			to[i] = t.one(from[i*t.Size : (i+1)*t.Size])
		}
	}
}

// Half reports whether t is float16 or bfloat16.
func (t Number) Half() bool { return t.Valid() && t.Size == 2 && (t.Kind == Float || t.Kind == BFloat) }

// InfiniteHalf returns the index of the first number that is NaN or infinite, or -1. t is float16 or
// bfloat16.
func (t Number) InfiniteHalf(of []byte) int {
	exponent := uint16(0x7c00)
	if t.Kind == BFloat {
		exponent = 0x7f80
	}
	order := binary.ByteOrder(binary.LittleEndian)
	if t.Swap {
		order = binary.BigEndian
	}
	// The bytes are compared in the order of the file, so that the loop converts nothing.
	var mask [2]byte
	order.PutUint16(mask[:], exponent)
	want := binary.LittleEndian.Uint16(mask[:])
	for i := range len(of) / 2 {
		if binary.LittleEndian.Uint16(of[2*i:])&want == want {
			return i
		}
	}
	return -1
}

// swapped converts big-endian numbers one by one.
func (t Number) swapped(to []float32, from []byte) {
	little := t
	little.Swap = false
	var element [8]byte
	for i := range to {
		for j := range t.Size {
			element[j] = from[(i+1)*t.Size-1-j]
		}
		little.Floats(to[i:i+1], element[:t.Size])
	}
}

// one converts one little-endian number of a type that has no specialised loop.
func (t Number) one(b []byte) float32 {
	var bits uint64
	for i, x := range b {
		bits |= uint64(x) << (8 * i)
	}
	switch t.Kind {
	case Float:
		return float32(math.Float64frombits(bits))
	case Uint:
		return float32(bits)
	}
	unused := 64 - 8*t.Size
	return float32(int64(bits<<unused) >> unused)
}
