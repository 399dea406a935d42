// The exponential function against the one of float64.

package gorgonia

import (
	"math"
	"testing"
)

func TestExp32(t *testing.T) {
	for x := -800.0; x < 800; x += 0.0137 {
		got, want := exp32(x), math.Exp(x)
		if got != want && !(math.Abs(got-want) < 1e-9*want) {
			t.Fatalf("exp32(%v) = %v, want %v", x, got, want)
		}
	}
	for _, x := range []float64{math.Inf(1), math.Inf(-1), 0, 1e300, -1e300} {
		if got, want := exp32(x), math.Exp(x); got != want {
			t.Errorf("exp32(%v) = %v, want %v", x, got, want)
		}
	}
	if !math.IsNaN(exp32(math.NaN())) {
		t.Error("exp32 loses NaN")
	}
	if exp[float32](0.3) != exp32(0.3) || exp[float64](0.3) != math.Exp(0.3) {
		t.Error("the element types are mixed up")
	}
}
