// Spoiled runs are found, and good runs cause no findings.

package runs

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/data/bagfile"
	"github.com/miplc/miplc/data/measure"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/internal/testkit/enginetest"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/train"
)

// findingsIn trains a spec on generated bags that spoil has changed, and returns the summary.
func findingsIn(t *testing.T, name string, set []string, spoil func(*train.Trial)) *Summary {
	t.Helper()
	spec := load(t, name, append([]string{"data.set=generated:prototypes"}, set...)...)
	trials, err := Trials([]*language.Spec{spec}, bagfile.Folder{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if spoil != nil {
		spoil(trials[0])
	}
	enginetest.Library(t)
	o := Task{Dir: t.TempDir()}
	r, err := Train(context.Background(), trials, o)
	if err != nil {
		t.Fatal(err)
	}
	return r.Runs[0]
}

func namesOf(list []Finding) (names []string) {
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
				t.Split.Test = append(t.Split.Test, addCopy(t.Data, bag))
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

func TestClassesThatAreNeverPredicted(t *testing.T) {
	classes := []measure.Class{{Name: "cat", Support: 5}, {Name: "dog", Support: 4}, {Name: "cow", Support: 9, Predicted: 9}}
	j := &judged{Evaluation: &train.Evaluation{DetailOf: data.TestPart, Detail: &measure.Detail{
		Accuracy: &measure.Interval{}, Confusion: [][]int{}, Classes: classes}}}
	if n, text := j.unpredicted(); n != 1 || text != "1 of 3 classes is never predicted on the test bags: cat" {
		t.Errorf("%v, %s", n, text)
	}
	classes[1].Support++
	if n, text := j.unpredicted(); n != 2 || text != "2 of 3 classes are never predicted on the test bags: cat, dog" {
		t.Errorf("%v, %s", n, text)
	}
}

// Label weights that leap between candidates have not settled. Nearly equal ones that cross each other are no fault.
func TestJumpingWeightsAreFound(t *testing.T) {
	for _, c := range []struct {
		weights [2]float32
		found   bool
	}{{[2]float32{0.9, 0.1}, true}, {[2]float32{0.55, 0.45}, false}} {
		j := &judged{report: &train.Report{}}
		for range 6 {
			var w [][]float32
			for epoch := range 41 {
				w = append(w, []float32{c.weights[epoch/2%2], c.weights[1-epoch/2%2]})
			}
			j.report.Trajectories = append(j.report.Trajectories, train.Trajectory{Weights: w})
		}
		if share, text := j.jumpingWeights(); (text != "") != c.found || c.found && math.Abs(share-0.5) > 0.05 {
			t.Errorf("weights %v: %g, %s", c.weights, share, text)
		}
	}
}

// Standard errors count the bags with a true label, and a best accuracy of 1 is not certain.
func TestFindingsOfBagsWithoutLabels(t *testing.T) {
	judge := func(labelled int, best, last float64) *judged {
		d := &data.Dataset{Classes: 2, Offsets: make([]int, 201), Labels: make([]int, 200), Candidates: make([]uint8, 400)}
		for bag := range d.Labels {
			d.Labels[bag] = -1
			if bag%100 < labelled {
				d.Labels[bag] = bag % 2
			}
		}
		metrics := func(v float64) train.Metrics {
			return train.Metrics{Epoch: 1, Measures: train.Measures{data.ValidationPart: {measure.Accuracy: v}}}
		}
		all := d.AllBags()
		return &judged{Trial: &train.Trial{Data: d, Split: &data.Split{Validation: all[:100], Test: all[100:]}},
			facts: &bagFacts{}, report: &train.Report{Metrics: []train.Metrics{metrics(best), metrics(last)}},
			Evaluation: &train.Evaluation{
				Measures: train.Measures{data.ValidationPart: {measure.Accuracy: best}, data.TestPart: {measure.Accuracy: last}},
				DetailOf: data.TestPart, Detail: &measure.Detail{Accuracy: &measure.Interval{Low: 0.4, High: 0.8},
					Confusion: [][]int{{labelled / 2, 0}, {0, labelled / 2}},
					Classes:   []measure.Class{{Support: labelled / 2}, {Support: labelled / 2}}}}}
	}
	for _, c := range []struct {
		labelled   int
		best, last float64
		found      bool
	}{{100, 0.667, 0.4, true}, {12, 0.667, 0.5, false}, {12, 1, 0.85, false}, {100, 1, 0.85, true}} {
		j := judge(c.labelled, c.best, c.last)
		_, fallen := j.fallen()
		_, differ := j.disagreement()
		if (fallen != "") != c.found || differ != "" && !c.found {
			t.Errorf("%+v: %q, %q", c, fallen, differ)
		}
		if _, text := j.uncertain(); c.labelled < 100 && !strings.HasPrefix(text, "12 test bags with a true label are too few") {
			t.Error(text)
		}
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

func TestAUROC(t *testing.T) {
	for _, c := range []struct {
		positive, negative []float32
		want               float64
	}{{[]float32{2, 3}, []float32{0, 1}, 1}, {[]float32{1}, []float32{1}, 0.5}, {[]float32{0, 2}, []float32{1}, 0.5}} {
		if got := auroc(c.positive, c.negative); got != c.want {
			t.Errorf("%v against %v: %g, want %g", c.positive, c.negative, got, c.want)
		}
	}
}
