// Random streams never change.

package ndarray

import (
	"fmt"
	"testing"
)

// The numbers of a stream are part of the file formats of miplc. If a golden number changes, old
// seeds no longer reproduce old results.
func TestGoldenNumbers(t *testing.T) {
	tests := []struct {
		seed  uint64
		name  string
		index []uint64
		want  string
	}{
		{1, "shuffle", nil, "278b3027184ace92 342 0.18755378573597326 1.2701671546941873"},
		{1, "shuffle", []uint64{0}, "043d22e11de3bc01 910 0.89789022701223808 -0.39853986225367732"},
		{1, "shuffle", []uint64{1}, "cdbfb42cfb102a3c 968 0.45368369456602353 -0.59982416958137386"},
		{1, "shuffle", []uint64{0, 1}, "4084e0c6c28c2182 701 0.297643632221684 -0.16985937907807447"},
		{2, "shuffle", nil, "0b5bca8b595d9e92 888 0.70117627655621761 -0.42392739045489092"},
		{0, "", nil, "97a0f877595535bd 358 0.36881741727718664 0.084046017410505103"},
		{1<<64 - 1, "dropout1", []uint64{1<<64 - 1}, "0b6a9bf6321b1465 620 0.99240613120133758 -0.14925942547919577"},
	}
	for _, tt := range tests {
		r := NewStream(tt.seed, tt.name, tt.index...)
		got := fmt.Sprintf("%016x %d %.17g %.17g", r.Uint64(), r.IntN(1000), r.Float64(), r.NormFloat64())
		if got != tt.want {
			t.Errorf("New(%d, %q, %v) gives %q, want %q", tt.seed, tt.name, tt.index, got, tt.want)
		}
	}
}

// Arguments with the same concatenation have different streams.
func TestKeysDiffer(t *testing.T) {
	keys := map[[32]byte]string{}
	for _, c := range []struct {
		seed  uint64
		name  string
		index []uint64
	}{
		{1, "a", nil}, {1, "ab", nil}, {1, "b", nil}, {1, "", nil}, {2, "a", nil},
		{1, "a", []uint64{0}}, {1, "a", []uint64{1}}, {1, "a", []uint64{0, 0}},
		{1, "a\x00\x00\x00\x00\x00\x00\x00\x00", nil},
	} {
		what := fmt.Sprintf("%d %q %v", c.seed, c.name, c.index)
		key := key(c.seed, c.name, c.index...)
		if other, ok := keys[key]; ok {
			t.Errorf("%s and %s have the same key", what, other)
		}
		keys[key] = what
	}
}

func TestRepeats(t *testing.T) {
	a, b := NewStream(7, "init", 3), NewStream(7, "init", 3)
	for i := range 1000 {
		if x, y := a.Uint64(), b.Uint64(); x != y {
			t.Fatalf("number %d differs: %x and %x", i, x, y)
		}
	}
}
