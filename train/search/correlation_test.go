// Rank correlations of settings and the order of trials.

package search

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/miplc/miplc/language"
)

func value(v float64) *float64 { return &v }

func TestCorrelations(t *testing.T) {
	grid := []language.Axis{{Key: "train.lr", Range: &language.Range{Form: "log", Low: 0.001, High: 1}},
		{Key: "train.seed", Values: make([]language.Assignment, 1)},
		{Key: "train.schedule", Values: make([]language.Assignment, 2)},
		{Key: "train.batch", Values: make([]language.Assignment, 2)}}
	results := []TrialResult{
		{Value: value(0.9), Rungs: make([]Rung, 1)}, // the spec as it is
		{Setting: "train.lr=0.1, train.seed=1, train.schedule=cosine, train.batch=4", Value: value(0.5),
			Rungs: make([]Rung, 2)},
		{Setting: "train.lr=0.01, train.seed=1, train.schedule=step, train.batch=4", Value: value(0.8),
			Rungs: make([]Rung, 1)},
		{Setting: "train.lr=0.02, train.seed=1, train.schedule=cosine, train.batch=2", Value: value(0.6),
			Rungs: make([]Rung, 1)},
		{Setting: "train.lr=0.003, train.seed=1, train.schedule=step, train.batch=1", Value: value(0.7),
			Rungs:    make([]Rung, 2),
			Diverged: true},
		{Setting: "train.lr=0.5, train.seed=1, train.schedule=step, train.batch=1", Error: "not finite"},
	}
	trials := [][]language.Assignment{nil}
	for _, r := range results[1:] {
		var set []language.Assignment
		for _, text := range strings.Split(r.Setting, ", ") {
			key, value, _ := strings.Cut(text, "=")
			set = append(set, language.Assignment{Key: key, Value: value})
		}
		trials = append(trials, set)
	}
	g := &Grid{grid, trials}
	settings := g.SettingsOf(results)
	if len(settings) != 3 || !settings[0].Log || !math.IsNaN(settings[0].X[0]) || settings[0].X[1] != 0.1 ||
		!slices.Equal(settings[1].Categories, []string{"cosine", "step"}) || settings[1].X[2] != 2 || settings[2].Log {
		t.Errorf("%+v", settings)
	}
	// the order of the four trials with values: 0.003 (diverged), 0.02, 0.01, 0.1 (two rungs)
	if got := Ranking(results, "accuracy"); !slices.Equal(got, []int{1, 0, 2, 3, 4}) {
		t.Errorf("ranking %v", got)
	}
	got := g.Correlations(results, false)
	if len(got) != 2 || math.Abs(got["train.lr"]-0.8) > 1e-12 {
		t.Errorf("%v", got)
	}
	if got := ranks([]float64{3, 1, 3, 2}); !reflect.DeepEqual(got, []float64{3.5, 1, 3.5, 2}) {
		t.Errorf("ranks %v", got)
	}
}

// A value may look like another setting.
func TestSettingsInValues(t *testing.T) {
	set := []language.Assignment{{Key: "data.columns.bag", Value: `"a, train.lr=2"`}, {Key: "train.lr", Value: "0.1"}}
	g := &Grid{[]language.Axis{{Key: "data.columns.bag", Values: set[:1]}, {Key: "train.lr", Values: set}},
		[][]language.Assignment{set}}
	got := g.SettingsOf([]TrialResult{{Setting: language.DescribeSettings(set), Value: value(1)}})
	if len(got) != 1 || got[0].Categories != nil || got[0].X[0] != 0.1 {
		t.Errorf("%+v", got)
	}
}
