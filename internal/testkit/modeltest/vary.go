// Trials of a group that differ.

package modeltest

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/train"
)

// Vary returns a trial like another one, with an edited spec; a nil edit changes nothing.
func Vary(t testing.TB, o *train.Trial, name string, edit func(*language.Spec)) *train.Trial {
	t.Helper()
	spec := *o.Program.Spec
	spec.Loss = slices.Clone(spec.Loss)
	if edit != nil {
		edit(&spec)
	}
	p, err := compile.Compile(&spec, o.Program.Signature)
	if err != nil {
		t.Fatal(err)
	}
	own := *o
	own.Name, own.Program = name, p
	return &own
}

// Rate and Seed are edits for Vary.
func Rate(lr float64) func(*language.Spec) { return func(s *language.Spec) { s.Train.LR.V = lr } }
func Seed(v int) func(*language.Spec)      { return func(s *language.Spec) { s.Train.Seed.V = v } }

// Mixed returns trials of one program that differ in everything they can differ in.
func Mixed(t testing.TB, o *train.Trial) []*train.Trial {
	t.Helper()
	list := []*train.Trial{
		Vary(t, o, "plain", nil), Vary(t, o, "seed", Seed(7)), Vary(t, o, "rate", Rate(3e-3)), Vary(t, o, "split", nil),
		Vary(t, o, "no attention loss", func(s *language.Spec) {
			for i := range s.Loss {
				if s.Loss[i].Term() == "attention" {
					s.Loss[i].Weight.V = 0
				}
			}
		}),
		Vary(t, o, "candidates", Seed(3)),
	}
	var err error
	if list[3].Split, err = data.RandomSplit(o.Data.Bags(), nil, data.SplitSettings{Train: 0.5, Seed: 2}); err != nil {
		t.Fatal(err)
	}
	set := *o.Data
	set.Candidates = append([]uint8(nil), o.Data.Candidates...)
	for i, label := range o.Data.Labels { // every bag gets one more candidate
		set.Candidates[i*o.Data.Classes+(label+1)%o.Data.Classes] = 1
	}
	list[5].Data = &set
	return list
}

// EarlyStop trains four trials in a group, of which one stops early, and compares the others with those of a group in
// which none does.
func EarlyStop(t testing.TB, by train.Trainer) {
	t.Helper()
	o := Quickstart(t, 60, 6, 1)
	split, err := data.RandomSplit(o.Data.Bags(), o.Data.TrueLists(), data.SplitSettings{Train: 0.7, Seed: 1,
		Stratify: true, Validation: 0.25})
	if err != nil {
		t.Fatal(err)
	}
	o.Split = split
	train4 := func(patience int) []*train.Report {
		list := make([]*train.Trial, 4)
		for i := range list {
			list[i] = Vary(t, o, fmt.Sprint(i), func(s *language.Spec) {
				s.Train.Seed.V, s.Train.Best.V, s.Train.Schedule.V = i, "loss", "constant"
				if i == 1 && patience > 0 {
					s.Train.LR.V, s.Train.Patience.V = 0.5, patience
				}
			})
		}
		reports := make([]*train.Report, len(list))
		by.Train(context.Background(), list, train.Options{}, func(i int, out train.Outcome) {
			if out.Err != nil {
				t.Fatal(out.Err)
			}
			reports[i] = out.Report
		})
		return reports
	}
	whole, broken := train4(0), train4(1)
	if broken[1].Best.Trained == 6 {
		t.Error("the second trial did not stop early")
	}
	for _, i := range []int{0, 2, 3} {
		if *whole[i].Best != *broken[i].Best || !reflect.DeepEqual(whole[i].State.Params, broken[i].State.Params) ||
			*whole[i].Measures.Accuracy("test") != *broken[i].Measures.Accuracy("test") ||
			!reflect.DeepEqual(whole[i].Attention, broken[i].Attention) ||
			!reflect.DeepEqual(whole[i].Weights, broken[i].Weights) {
			t.Errorf("trial %d ends with other bits: %+v, want %+v", i, broken[i].Best, whole[i].Best)
		}
	}
}
