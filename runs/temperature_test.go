// The temperature of probabilities that are nearly equal.

package runs

import (
	"math"
	"strings"
	"testing"

	"github.com/miplc/miplc/data/bagfile"
	"github.com/miplc/miplc/data/measure"
	"github.com/miplc/miplc/internal/testkit/enginetest"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/runs/prepare"
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

// Without any true label, a temperature is fitted to the candidate sets of the validation bags, and the summary says
// how many predictions for test bags are candidates.
func TestRunWithoutTrueLabels(t *testing.T) {
	spec := load(t, "quickstart", "data.set=generated:prototypes", "train.epochs=3", "data.split.validation=0.3",
		"train.best=inside_candidates", "export.temperature=validation")
	trials, err := prepare.Trials([]*language.Spec{spec}, bagfile.Folder{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	trials[0].Data.Labels = nil
	enginetest.Library(t)
	r, err := Train(t.Context(), trials, Task{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	s := r.Runs[0]
	if s.Temperature == nil || !s.Temperature.Candidates || s.Temperature.FittedTo == 0 || s.Temperature.Value <= 0 {
		t.Errorf("temperature %+v", s.Temperature)
	}
	if v := s.Measures.Test().Get(measure.InsideCandidates); v == nil || s.TestAccuracy != nil {
		t.Errorf("measures %v", s.Measures)
	}
}

func TestTemperatureOfUselessCandidates(t *testing.T) {
	spec := load(t, "quickstart", "data.set=generated:prototypes", "data.split.validation=0.3",
		"export.temperature=validation")
	trials, err := prepare.Trials([]*language.Spec{spec}, bagfile.Folder{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	d := trials[0].Data
	d.Labels = nil
	if err := trials[0].CheckValidation(); err != nil {
		t.Error(err)
	}
	for i := range d.Candidates {
		d.Candidates[i] = 1
	}
	if err := trials[0].CheckValidation(); err == nil || strings.Contains(err.Error(), "data.split.validation") ||
		!strings.Contains(err.Error(), "candidate set that excludes a class") {
		t.Errorf("error %v", err)
	}
}
