// The result of a trial on folds is the mean over the folds, as far as all of them came.

package search

import (
	"reflect"
	"testing"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/data/measure"
	"github.com/miplc/miplc/train"
)

func TestMeanOfFolds(t *testing.T) {
	one := func(epochs int, values ...float64) TrialResult {
		r := TrialResult{Setting: "s", Parameters: 5, Seconds: 1, Epochs: epochs}
		for i, v := range values {
			epoch := min(epochs, []int{1, 3, 9}[i])
			r.Rungs, r.Curve = append(r.Rungs, Rung{Epoch: epoch, Value: v}), append(r.Curve, CurvePoint{epoch, v})
			r.Value, r.Accuracy = &v, &v
		}
		return r
	}
	failed, diverged := one(1, 0.5), one(1, 0.5)
	failed.Error, diverged.Diverged, diverged.Rungs[0].Diverged = "not finite", true, true
	value := func(v float64) *float64 { return &v }
	for name, c := range map[string]struct {
		folds []TrialResult
		want  TrialResult
	}{
		"not started": {[]TrialResult{one(0), one(0)}, TrialResult{Setting: "s", Parameters: 5, Seconds: 2}},
		"one fold only": {[]TrialResult{one(1, 0.5), one(0)}, TrialResult{Setting: "s", Parameters: 5, Seconds: 2,
			Epochs: 1}},
		"both": {[]TrialResult{one(3, 0.5, 0.7), one(3, 0.25, 0.5)}, TrialResult{Setting: "s", Parameters: 5, Seconds: 2,
			Epochs:   3,
			Accuracy: value(0.6), Value: value(0.6), Folds: []float64{0.7, 0.5}, Rungs: []Rung{{1, 0.375, false}, {3, 0.6,
				false}}, Curve: []CurvePoint{{1, 0.375}, {3, 0.6}}}},
		"the second came less far": {[]TrialResult{one(3, 0.5, 0.7), one(1, 0.25)}, TrialResult{Setting: "s", Parameters: 5,
			Seconds: 2,
			Epochs:  3, Value: value(0.375), Folds: []float64{0.5, 0.25}, Rungs: []Rung{{1, 0.375, false}},
			Curve: []CurvePoint{{1, 0.375}}}},
		"the second stopped early": {[]TrialResult{one(9, 0.5, 0.5, 0.5), one(2, 0.25, 0.75, 0.75)}, TrialResult{Setting: "s",
			Parameters: 5, Seconds: 2, Epochs: 9, Accuracy: value(0.625), Value: value(0.625), Folds: []float64{0.5, 0.75},
			Rungs: []Rung{{1, 0.375, false}, {3, 0.625, false}, {9, 0.625, false}},
			Curve: []CurvePoint{{1, 0.375}, {2, 0.625}, {3, 0.625}, {9, 0.625}}}},
		"the second failed": {[]TrialResult{one(1, 0.5), failed}, TrialResult{Setting: "s", Parameters: 5, Seconds: 2,
			Epochs: 1,
			Error:  "fold 2 of 2: not finite", Accuracy: value(0.5), Value: value(0.5), Folds: []float64{0.5, 0.5},
			Rungs: []Rung{{1, 0.5, false}}, Curve: []CurvePoint{{1, 0.5}}}},
		"the first diverged": {[]TrialResult{diverged, one(1, 0.5)}, TrialResult{Setting: "s", Parameters: 5, Seconds: 2,
			Epochs:   1,
			Diverged: true, Accuracy: value(0.5), Value: value(0.5), Folds: []float64{0.5, 0.5},
			Rungs: []Rung{{1, 0.5, true}}, Curve: []CurvePoint{{1, 0.5}}}},
	} {
		if got := meanOf(c.folds); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// Means of the same values in another order are equal, so that the number of parameters decides.
func TestEqualMeans(t *testing.T) {
	x, y, z := 0.1, 0.2, 0.3
	if x+y+z == z+y+x {
		t.Error("this test needs values whose sums round differently")
	}
	if a, b := average([]float64{x, y, z}), average([]float64{z, y, x}); a != b {
		t.Errorf("%v and %v", a, b)
	}
}

// The trainings of a trial differ in their split, folder and name, and the text of figures names the folds.
func TestOnFolds(t *testing.T) {
	whole := &train.Trial{Name: "trial-1", Dir: "dir"}
	s := nine(t, t.TempDir(), 3)
	splits := []*train.Trial{s.Trials[0][0], s.Trials[0][1]}
	list := OnFolds(whole, []*data.Split{splits[0].Split, splits[1].Split})
	if len(list) != 2 || list[1].Split != splits[1].Split || list[0].Dir == list[1].Dir || list[0].Name == list[1].Name {
		t.Errorf("%+v", list)
	}
	if single := OnFolds(whole, []*data.Split{splits[0].Split}); len(single) != 1 || single[0].Dir != "dir" {
		t.Errorf("%+v", single)
	}
	by := measure.Find(measure.Accuracy)
	if got := Axis(by, 3) + ", " + Axis(by, 0); got != "accuracy of 3 folds, accuracy of held-out bags" {
		t.Error(got)
	}
}
