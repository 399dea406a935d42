// Work that needs too much memory is refused.

package resources

import (
	"math"
	"runtime/debug"
	"testing"
)

func TestCheck(t *testing.T) {
	before := debug.SetMemoryLimit(64 << 20)
	defer debug.SetMemoryLimit(before)
	if b := Memory(); b.Bytes > 64<<20 || b.Bound == "" {
		t.Errorf("with GOMEMLIMIT of 64 MiB there are %+v", b)
	}
	err := Memory().Check("training", 1<<42, "use a smaller model")
	if err == nil || err.Error() != "training needs at least 4 TiB of memory; 64 MiB are available (GOMEMLIMIT): use a "+
		"smaller model" {
		t.Errorf("%v", err)
	}
	if err := Memory().Check("training", 1<<20, ""); err != nil {
		t.Errorf("%v", err)
	}
}

// Calls of LimitHeapGrowth overlap: the first undo does not loosen what the second call needs, and the last one
// restores the default, in any order.
func TestLimitsOverlap(t *testing.T) {
	percent := func() int {
		p := debug.SetGCPercent(100)
		debug.SetGCPercent(p)
		return p
	}
	before := percent()
	for _, order := range [][]int{{0, 1}, {1, 0}} {
		undo := []func(){LimitHeapGrowth(), LimitHeapGrowth()}
		undo[order[0]]()
		undo[order[0]]() // again: no effect
		if p := percent(); p != 10 {
			t.Errorf("order %v: the collector runs at %d %% although one call is not undone", order, p)
		}
		undo[order[1]]()
		if p := percent(); p != before {
			t.Errorf("order %v: %d %% remain of %d", order, p, before)
		}
	}
}

func TestSize(t *testing.T) {
	for bytes, want := range map[float64]string{
		0: "0 bytes", 1023: "1023 bytes", 1024: "1 KiB", 150 << 20: "150 MiB", 1.5 * (1 << 40): "1.5 TiB",
		math.Ldexp(1, 90): "1e+09 EiB", math.Inf(1): "+Inf EiB",
	} {
		if got := Bytes(bytes); got != want {
			t.Errorf("%g bytes are %q, want %q", bytes, got, want)
		}
	}
}
