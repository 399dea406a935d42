package train

import (
	"math"
	"strings"
	"testing"

	"github.com/miplc/miplc/language"
)

// The verdict follows the size of the loss, not its noise.
func TestDivergence(t *testing.T) {
	spec, err := language.Load("quickstart", "data.normalize=none", "train.lr=0.02")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name     string
		start    float64
		losses   []float64
		diverged int // epoch; 0: none
	}{
		{"learns", 2.6, []float64{2.5, 1.2, 0.3}, 0},
		{"noisy", 1.6, []float64{3.1, 1.4, 2.9, 0.8, 1.9, 1.2}, 0},
		{"learns nothing", 1.6, []float64{1.7, 1.61, 1.61}, 0},
		{"gated ABMIL at 0.02", 2.487, []float64{2.6, 2.045e8, 787, 2.557}, 2},
		{"dead at once", 1.6, []float64{5e4, 1.61, 1.61}, 1},
		{"MIPLMA on small bags", 2.996, []float64{2.9, 2.48, 2.46, 2.93}, 3},
		{"keeps most", 2.996, []float64{2.9, 2.48, 2.46, 2.6}, 0},
		{"learns little", 1.6, []float64{1.6, 1.55, 1.6}, 0},
		{"large terms of bags collapse", 900, []float64{800, 300, 700}, 2},
		{"recovers", 1.6, []float64{1.5, 40, 1.1, 0.2}, 0},
		{"ends high", 1.6, []float64{1.5, 2, 4}, 3},
		{"terms of large bags", 900, []float64{880, 850, 840}, 0},
		{"large terms explode", 900, []float64{880, 85000, 890}, 2},
		{"negative", -3, []float64{-4, -9, -12}, 0},
		{"negative explodes", -3, []float64{-4, 400, 30}, 2},
	} {
		metrics := make([]Metrics, len(c.losses))
		for i, loss := range c.losses {
			metrics[i] = Metrics{Epoch: i + 1, Loss: loss}
		}
		metrics[0].StartLoss = &c.start
		d := divergence(metrics, 5, spec)
		switch {
		case (d == nil) != (c.diverged == 0):
			t.Errorf("%s: %v", c.name, d)
		case d != nil && (d.Epoch != c.diverged || !strings.Contains(d.Advice, "0.002") || !strings.Contains(d.Advice, "data.normalize: training")):
			t.Errorf("%s: %+v", c.name, d)
		}
	}
	if d := divergence([]Metrics{{Epoch: 1, Loss: math.MaxFloat64}}, 5, spec); d != nil {
		t.Errorf("a learner without steps: %v", d)
	}
}
