// The temperature of probabilities that are nearly equal.

package runs

import (
	"math"
	"testing"
)

// The powers of small probabilities underflow; their shares do not.
func TestTemperatureOfManyClasses(t *testing.T) {
	p := make([]float32, 2000)
	for i := range p {
		p[i] = 1. / 2000
	}
	p[7] = 1.01 / 2000
	got := (&Temperature{Value: 0.01}).applyTo(p)
	// 1.01^100 to 1^100
	high := math.Pow(1.01, 100)
	for i, want := range map[int]float64{7: high / (high + 1999), 8: 1 / (high + 1999)} {
		if math.Abs(float64(got[i])-want) > 1e-4*want {
			t.Errorf("probability %d is %v, want %v", i, got[i], want)
		}
	}
}
