// Work that needs too much memory is refused.

package memory

import (
	"math"
	"runtime/debug"
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	before := debug.SetMemoryLimit(64 << 20)
	defer debug.SetMemoryLimit(before)
	if room := Available(); room.Bytes > 64<<20 || room.Bound == "" {
		t.Errorf("with GOMEMLIMIT of 64 MiB there are %+v", room)
	}
	err := Check("training", 1<<42)
	if err == nil || !strings.HasPrefix(err.Error(), "training takes at least 4 TiB of memory; there are 64 MiB "+
		"(GOMEMLIMIT)") {
		t.Errorf("%v", err)
	}
	if err := Check("training", 1<<20); err != nil {
		t.Errorf("%v", err)
	}
}

func TestSize(t *testing.T) {
	for bytes, want := range map[float64]string{
		0: "0 bytes", 1023: "1023 bytes", 1024: "1 KiB", 150 << 20: "150 MiB", 1.5 * (1 << 40): "1.5 TiB",
		math.Ldexp(1, 90): "1e+09 EiB", math.Inf(1): "+Inf EiB",
	} {
		if got := Size(bytes); got != want {
			t.Errorf("%g bytes are %q, want %q", bytes, got, want)
		}
	}
}
