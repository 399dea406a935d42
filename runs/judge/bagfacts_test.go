// Copies, contradictions, constants and leaks are found in bags, and ordinary bags have none.

package judge

import (
	"context"
	"maps"
	"slices"
	"testing"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/train"
)

// factsOf returns the facts of a trial that spoil has changed.
func factsOf(t *testing.T, spoil func(*train.Trial)) *bagFacts {
	t.Helper()
	trial := testBags(180, 4, 3, 1)
	spoil(trial)
	e, err := NewBaselines().of(context.Background(), trial)
	if err != nil {
		t.Fatal(err)
	}
	return e.facts
}

// eachValue replaces the features of all instances; instance is a row of the dataset.
func eachValue(d *data.Dataset, f func(bag, instance, feature int, v float32) float32) {
	for bag := range d.Bags() {
		for i := d.Offsets[bag]; i < d.Offsets[bag+1]; i++ {
			for j := range d.Dim() {
				d.Instances[i*d.Dim()+j] = f(bag, i, j, d.Instances[i*d.Dim()+j])
			}
		}
	}
}

// AddCopy appends a copy of a bag, with its instances in the reverse order, and returns its number.
func AddCopy(d *data.Dataset, bag int) int {
	for i := d.Offsets[bag+1] - 1; i >= d.Offsets[bag]; i-- {
		d.Instances = append(d.Instances, d.Instances[i*d.Dim():(i+1)*d.Dim()]...)
	}
	d.Offsets = append(d.Offsets, d.Offsets[d.Bags()]+d.Size(bag))
	d.Labels, d.Candidates = append(d.Labels, d.Labels[bag]), append(d.Candidates, d.CandidateMask(bag)...)
	return d.Bags() - 1
}

func TestOrdinaryBags(t *testing.T) {
	f := factsOf(t, func(*train.Trial) {})
	if len(f.copies)+len(f.contradictions)+f.constant > 0 || f.leak >= 0 || f.compared != 60 {
		t.Errorf("%+v", f)
	}
}

func TestCopiesOfTrainingBags(t *testing.T) {
	for _, noise := range []float32{0, 1e-4} {
		var copies []int
		f := factsOf(t, func(trial *train.Trial) {
			for bag := range 5 {
				copies = append(copies, AddCopy(trial.Data, bag))
			}
			eachValue(trial.Data, func(bag, _, _ int, v float32) float32 {
				if bag >= copies[0] {
					v += noise
				}
				return v
			})
			trial.Split.Test = append(trial.Split.Test, copies...)
		})
		if got := slices.Sorted(maps.Keys(f.copies)); !slices.Equal(got, copies) || f.copies[copies[2]] != 2 {
			t.Errorf("noise %g: %+v", noise, f.copies)
		}
	}
}

func TestContradictions(t *testing.T) {
	var pair [2]int
	f := factsOf(t, func(trial *train.Trial) {
		right, wrong := AddCopy(trial.Data, 3), AddCopy(trial.Data, 4)
		pair = [2]int{4, wrong}
		trial.Data.Labels[wrong] = 2
		trial.Split.Train = append(trial.Split.Train, right, wrong)
	})
	if len(f.contradictions) != 1 || f.contradictions[0] != pair {
		t.Errorf("%+v, want %v", f.contradictions, pair)
	}
}

// With candidates only, sets without a common label contradict each other.
func TestContradictingCandidates(t *testing.T) {
	f := factsOf(t, func(trial *train.Trial) {
		same, other := AddCopy(trial.Data, 0), AddCopy(trial.Data, 1)
		clear(trial.Data.CandidateMask(other))
		trial.Data.CandidateMask(other)[2] = 1
		trial.Data.Labels = nil
		trial.Split.Train = append(trial.Split.Train, same, other)
	})
	if len(f.contradictions) != 1 || f.contradictions[0][0] != 1 {
		t.Errorf("%+v", f.contradictions)
	}
}

// Bags of features with few values are often equal, which is no fault.
func TestEqualBagsOfFewValues(t *testing.T) {
	f := factsOf(t, func(trial *train.Trial) {
		eachValue(trial.Data, func(bag, i, j int, v float32) float32 { return float32((bag / 3) % 4) })
	})
	if len(f.copies)+len(f.contradictions) > 0 {
		t.Errorf("%+v", f)
	}
}

func TestConstantFeatures(t *testing.T) {
	for constant := range 5 {
		f := factsOf(t, func(trial *train.Trial) {
			eachValue(trial.Data, func(bag, _, feature int, v float32) float32 {
				if feature < constant {
					v = 0.1
				}
				return v
			})
		})
		if f.constant != constant {
			t.Errorf("%d constant features, want %d", f.constant, constant)
		}
	}
}

// A feature that is the label, in all instances or in one of a bag, is found; a good feature among good ones is not.
func TestLeakingFeature(t *testing.T) {
	leaks := func(instances, features int) int {
		return factsOf(t, func(trial *train.Trial) {
			eachValue(trial.Data, func(bag, i, feature int, v float32) float32 {
				if feature == 0 {
					v -= 2 * float32(trial.Data.Labels[bag])
				}
				if feature > 0 && feature <= features && i < trial.Data.Offsets[bag]+instances {
					v = 10 * float32(1+trial.Data.Labels[bag])
				}
				return v
			})
		}).leak
	}
	if leaks(9, 1) != 1 || leaks(1, 1) != 1 || leaks(9, 2) != -1 {
		t.Errorf("leaks in features %d, %d, %d", leaks(9, 1), leaks(1, 1), leaks(9, 2))
	}
}

// A part of the bags of a large dataset is examined.
func TestSampleOfLargeDatasets(t *testing.T) {
	trial := testBags(180, 4, 3, 1)
	s := newSample(trial, 12*60)
	if s.complete || len(s.bags) != 60 || s.training != 40 || len(s.test) != 20 {
		t.Errorf("%d bags, %d for training", len(s.bags), s.training)
	}
}
