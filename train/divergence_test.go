// Exploded and collapsed trainings are marked, good ones are not.

package train

import (
	"math"
	"strings"
	"testing"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/data"
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
		case d != nil && (d.Epoch != c.diverged || !strings.Contains(d.Advice, "0.002") ||
			!strings.Contains(d.Advice, "data.normalize: training")):
			t.Errorf("%s: %+v", c.name, d)
		}
	}
	if d := divergence([]Metrics{{Epoch: 1, Loss: math.MaxFloat64}}, 5, spec); d != nil {
		t.Errorf("a learner without steps: %v", d)
	}
}

// A training collapsed if it learned nothing and predicts one class for all training bags, although a candidate set
// excludes it.
func TestCollapse(t *testing.T) {
	spec, err := language.Load("quickstart")
	if err != nil {
		t.Fatal(err)
	}
	one, two := []float32{0.1, 0.5, 0.4}, []float32{0.1, 0.4, 0.5}
	excluding, allowing := [][]uint8{{1, 1, 0}, {1, 0, 1}}, [][]uint8{{1, 1, 0}, {0, 1, 1}}
	for _, c := range []struct {
		name       string
		epochs     int
		last       float64
		rows       [][]float32
		candidates [][]uint8
		collapsed  bool
	}{
		{"one class", 10, 1.11, [][]float32{one, one}, excluding, true},
		{"two classes", 10, 1.11, [][]float32{one, two}, excluding, false},
		{"one class that all bags may have", 10, 1.11, [][]float32{one, one}, allowing, false},
		{"a frequent class", 10, 0.4, [][]float32{one, one}, excluding, false},
		{"few epochs", 9, 1.11, [][]float32{one, one}, excluding, false},
	} {
		start, p := 1.1, &Predictions{}
		for i, row := range c.rows {
			p.Predictions.Add(row, nil, c.candidates[i])
		}
		r := &Record{
			Trial: &Trial{Program: &compile.Program{Spec: spec}, Data: &data.Dataset{Classes: 3, ClassNames: []string{"a", "b",
				"c"}}},
			Last: PartPredictions{data.TrainPart: p},
		}
		for epoch := range c.epochs {
			r.Metrics = append(r.Metrics, Metrics{Epoch: epoch + 1, Loss: c.last})
		}
		r.Metrics[0].StartLoss = &start
		d := r.collapse(r.Metrics)
		if (d != nil) != c.collapsed {
			t.Errorf("%s: %v", c.name, d)
		} else if d != nil && (d.Verdict() != "COLLAPSED" ||
			!strings.HasPrefix(d.String(), "training collapsed: the model predicts b for all training bags")) {
			t.Errorf("%s: %s: %v", c.name, d.Verdict(), d)
		}
	}
}
