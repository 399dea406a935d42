// Values as bytes.

package ndarray

import (
	"math"
	"slices"
	"testing"
)

func TestBytes(t *testing.T) {
	floats := []float32{0, -1.5, math.MaxFloat32, float32(math.Inf(-1))}
	raw := AppendBytes([]byte{7}, floats)
	if want := []byte{7, 0, 0, 0, 0, 0, 0, 0xc0, 0xbf}; !slices.Equal(raw[:9], want) || len(raw) != 17 {
		t.Errorf("floats are encoded as %v", raw)
	}
	if got := FromBytes[float32](raw[1:]); !slices.Equal(got, floats) {
		t.Errorf("%v was decoded as %v", floats, got)
	}
	wholes := []int64{-2, 1 << 40}
	if got := FromBytes[int64](append(AppendBytes(nil, wholes), 1, 2)); !slices.Equal(got, wholes) {
		t.Errorf("%v was decoded as %v", wholes, got)
	}
}
