// Spoiled runs are found, and good runs cause no findings.

package judge_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/miplc/miplc/data/bagfile"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/internal/testkit/enginetest"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/runs"
	"github.com/miplc/miplc/runs/judge"
	"github.com/miplc/miplc/runs/prepare"
	"github.com/miplc/miplc/train"
)

// findingsIn trains a spec on generated bags that spoil has changed, and returns the summary.
func findingsIn(t *testing.T, name string, set []string, spoil func(*train.Trial)) *runs.Summary {
	t.Helper()
	spec, err := language.Load(name, append([]string{"data.set=generated:prototypes"}, set...)...)
	if err != nil {
		t.Fatal(err)
	}
	trials, err := prepare.Trials([]*language.Spec{spec}, bagfile.Folder{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if spoil != nil {
		spoil(trials[0])
	}
	enginetest.Library(t)
	o := runs.Task{Dir: t.TempDir()}
	r, err := runs.Train(context.Background(), trials, o)
	if err != nil {
		t.Fatal(err)
	}
	return r.Runs[0]
}

func namesOf(list []judge.Finding) (names []string) {
	for _, f := range list {
		names = append(names, f.Name)
	}
	return names
}

func TestSpoiledRunsAreFound(t *testing.T) {
	for _, c := range []struct {
		name, want string
		set        []string
		spoil      func(*train.Trial)
	}{
		{"shuffled labels", "guessing", nil, func(t *train.Trial) {
			r := ndarray.NewStream(1, "shuffled labels")
			for bag := range t.Data.Bags() {
				class := r.IntN(t.Data.Classes)
				t.Data.Labels[bag] = class
				clear(t.Data.CandidateMask(bag))
				t.Data.CandidateMask(bag)[class] = 1
			}
		}},
		{"learned by heart", "overfitting", []string{"train.epochs=200", "train.weight_decay=0", "data.generated.noise=3",
			"data.generated.candidates=0"}, nil},
		{"rate too high", "failed", []string{"train.lr=50"}, nil},
		{"a class without training bags", "classes", nil, func(t *train.Trial) {
			t.Split.Train = slices.DeleteFunc(t.Split.Train, func(bag int) bool { return t.Data.CandidateMask(bag)[0] == 1 })
		}},
		{"a class with three training bags, and one without", "rare", nil, func(t *train.Trial) {
			n := 0
			t.Split.Train = slices.DeleteFunc(t.Split.Train, func(bag int) bool {
				mask := t.Data.CandidateMask(bag)
				if mask[0] == 1 && mask[1] == 0 {
					n++
				}
				return mask[1] == 1 || mask[0] == 1 && n > 3
			})
		}},
		{"frozen label weights", "weights", []string{"train.epochs=1", "train.lr=1e-7", "weights.schedule=averaging"}, nil},
		{"a wrong candidate set", "candidates", []string{"train.epochs=15", "train.weight_decay=0.003",
			"data.generated.bags=900", "data.generated.candidates=0"}, func(t *train.Trial) {
			for _, bag := range t.Split.Train[:3] {
				wrong := (t.Data.Labels[bag] + 1) % t.Data.Classes
				clear(t.Data.CandidateMask(bag))
				t.Data.CandidateMask(bag)[wrong], t.Data.Labels[bag] = 1, wrong
			}
		}},
		{"constant features", "constant", nil, func(t *train.Trial) {
			for i := range t.Data.Instances {
				t.Data.Instances[i] = 3
			}
		}},
		{"training bags in the test part", "copies", nil, func(t *train.Trial) {
			t.Data.InstLabels = nil
			for _, bag := range t.Split.Train[:9] {
				t.Split.Test = append(t.Split.Test, judge.AddCopy(t.Data, bag))
			}
		}},
		{"a third of the candidate sets wrong", "noise", nil, func(t *train.Trial) {
			t.Data.Noisy = true
			for bag := 0; bag < t.Data.Bags(); bag += 3 {
				t.Data.CandidateMask(bag)[t.Data.Labels[bag]] = 0
				t.Data.CandidateMask(bag)[(t.Data.Labels[bag]+1)%t.Data.Classes] = 1
			}
		}},
		{"99 bags of one class to 1", "test bags", []string{"train.epochs=5"}, func(t *train.Trial) {
			few := func(bag int) bool { return t.Data.Labels[bag] > 1 || t.Data.Labels[bag] == 1 && bag%7 > 0 }
			t.Split.Train = slices.DeleteFunc(t.Split.Train, few)
			first := slices.IndexFunc(t.Split.Test, func(bag int) bool { return t.Data.Labels[bag] == 1 })
			rare := t.Split.Test[first]
			t.Split.Test = slices.DeleteFunc(t.Split.Test, func(bag int) bool { return t.Data.Labels[bag] != 0 })
			t.Split.Test = append(t.Split.Test, rare)
		}},
		{"few test bags", "test bags", nil, func(t *train.Trial) { t.Split.Test = t.Split.Test[:6] }},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := findingsIn(t, "quickstart", c.set, c.spoil)
			if !slices.Contains(namesOf(s.Findings), c.want) {
				t.Errorf("findings %+v, want %s; test accuracy %v", s.Findings, c.want, *s.TestAccuracy)
			}
			for _, f := range s.Findings {
				if f.Name == "rare" && f.Value != 3 {
					t.Errorf("%+v, want 3 bags", f)
				}
			}
		})
	}
}

// Scores between 0.98 and 1 rank the instances, but a picture of them is of one colour.
func TestFlatAttentionIsFound(t *testing.T) {
	const spec = `name: carpet
extends: quickstart
model:
  let: {carpet: 0.98 + 0.02 * a}
  attention: carpet
loss: [disambiguation]
`
	file := filepath.Join(t.TempDir(), "carpet.yaml")
	if err := os.WriteFile(file, []byte(spec), 0o644); err != nil {
		t.Fatal(err)
	}
	s := findingsIn(t, file, nil, nil)
	if len(s.Findings) != 1 || s.Findings[0].Name != "attention" || !strings.Contains(s.Findings[0].Text, "AUROC of 0.9") {
		t.Errorf("findings %+v; test accuracy %v", s.Findings, *s.TestAccuracy)
	}
}

// The shipped specs learn the generated bags, for which most of them need fewer epochs than their papers have.
func TestGoodRunsAreQuiet(t *testing.T) {
	for _, name := range []string{"quickstart", "demipl-mlp", "miplma", "elimipl", "gated-abmil"} {
		t.Run(name, func(t *testing.T) {
			if s := findingsIn(t, name, []string{"train.epochs=60"}, nil); len(s.Findings) > 0 {
				t.Errorf("findings %+v; test accuracy %v", s.Findings, *s.TestAccuracy)
			}
		})
	}
}
