// Conversions between element types, and to bytes.

package ndarray

import (
	"encoding/binary"
	"fmt"
)

// Convert returns the numbers as T, rounded if T is narrower.
func Convert[T, From ~int | ~int32 | ~int64 | float32 | float64](numbers []From) []T {
	out := make([]T, len(numbers))
	for i, v := range numbers {
		out[i] = T(v)
	}
	return out
}

// AppendBytes appends the numbers in little-endian order.
func AppendBytes[T float32 | int64](to []byte, numbers []T) []byte {
	to, err := binary.Append(to, binary.LittleEndian, numbers)
	if err != nil {
		panic(fmt.Sprintf("bug: %v", err)) // these types have a size
	}
	return to
}

// FromBytes decodes what AppendBytes wrote. It ignores bytes after the last whole
// number.
func FromBytes[T float32 | int64](from []byte) []T {
	out := make([]T, len(from)/binary.Size(T(0)))
	if _, err := binary.Decode(from, binary.LittleEndian, out); err != nil {
		panic(fmt.Sprintf("bug: %v", err)) // there are as many bytes as the numbers need
	}
	return out
}
