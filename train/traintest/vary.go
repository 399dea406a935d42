package traintest

import (
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
	if list[3].Split, err = data.RandomSplit(o.Data.Bags(), nil, data.SplitOptions{Train: 0.5, Seed: 2}); err != nil {
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
