// Means and deviations of several runs combine seeds and splits of one setting, never different settings.

package runs

import (
	"fmt"
	"math"
	"testing"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/train"
)

// Accuracies are averaged over seeds and splits, but not over settings.
func TestAverage(t *testing.T) {
	accuracies := []float64{0.5, 0.75, 0.9, 0.7, 0.2, -1}
	r := &Results{}
	var trials []*train.Trial
	for i, c := range []struct{ name, setting, set string }{
		{"split-1-seed-1-lr-0.01", "lr-0.01", "train.seed=1"},
		{"split-2-seed-2-lr-0.01", "lr-0.01", "train.seed=2"},
		{"split-1-seed-1-lr-0.05", "lr-0.05", "train.lr=0.05"},
		{"split-3-seed-1-lr-0.05", "lr-0.05", "train.lr=0.05"},
		{"seed-1", "", "train.lr=0.1"},
		{"seed-2", "", "train.lr=0.1"}, // without a test bag
	} {
		spec := load(t, "quickstart", c.set, fmt.Sprint("data.split.seed=", i+1))
		trials = append(trials, &train.Trial{Name: c.name, Setting: c.setting, Program: &compile.Program{Spec: spec}})
		summary := &Summary{Folder: c.name, TestAccuracy: &accuracies[i]}
		if accuracies[i] < 0 {
			summary.TestAccuracy = nil
		}
		r.Runs = append(r.Runs, summary)
	}
	r.average(trials)
	for i, want := range []struct {
		setting   string
		runs      int
		mean, std float64
	}{{"lr-0.01", 2, 0.625, 0.25 / math.Sqrt2}, {"lr-0.05", 2, 0.8, 0.2 / math.Sqrt2}, {"", 1, 0.2, math.NaN()}} {
		got := r.Settings[i]
		if got.Setting != want.setting || got.Runs != want.runs || math.Abs(*got.Mean-want.mean) > 1e-12 ||
			(got.Std == nil) != math.IsNaN(want.std) || got.Std != nil && math.Abs(*got.Std-want.std) > 1e-12 {
			t.Errorf("%q: %d runs, %v±%v, want %+v", got.Setting, got.Runs, *got.Mean, got.Std, want)
		}
	}
	if len(r.Settings) != 3 {
		t.Errorf("%d settings", len(r.Settings))
	}
}
