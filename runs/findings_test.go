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
	"github.com/miplc/miplc/train/engines"
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
	o := Task{Dir: t.TempDir(), Version: "test", Request: engines.Request{Library: enginetest.Library(t)}}
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
	j := &judged{report: &train.Report{DetailOf: data.TestPart, Detail: &measure.Detail{Accuracy: &measure.Interval{},
		Confusion: [][]int{}, Classes: classes}}}
	if n, text := j.unpredicted(); n != 1 || text != "1 of 3 classes is never predicted on the test bags: cat" {
		t.Errorf("%v, %s", n, text)
	}
	classes[1].Support++
	if n, text := j.unpredicted(); n != 2 || text != "2 of 3 classes are never predicted on the test bags: cat, dog" {
		t.Errorf("%v, %s", n, text)
	}
}

// With a rate that is too high, a model can be right while the label weights of its training bags have not settled.
func TestJumpingWeightsAreFound(t *testing.T) {
	s := findingsIn(t, "gated-abmil", []string{"train.lr=0.3"}, nil)
	if !slices.Contains(namesOf(s.Findings), "jumps") {
		t.Errorf("findings %+v, test accuracy %v", s.Findings, *s.TestAccuracy)
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

// The baseline separates bags whose means differ, and its optimizer has converged: the gradient is zero.
func TestBaseline(t *testing.T) {
	r := ndarray.NewStream(1, "baseline")
	d := &data.Dataset{Shape: []int{2}, Classes: 3, Offsets: []int{0}}
	for bag := range 60 {
		class := bag % 3
		for range 1 + r.IntN(4) {
			d.Instances = append(d.Instances, float32(3*class)+float32(r.NormFloat64()), float32(r.NormFloat64()))
		}
		d.Offsets = append(d.Offsets, len(d.Instances)/2)
		d.Labels = append(d.Labels, class)
		mask := make([]uint8, 3)
		mask[class], mask[(class+bag/3%2)%3] = 1, 1
		d.Candidates = append(d.Candidates, mask...)
	}
	all := d.AllBags()
	trial := &train.Trial{Data: d, Split: &data.Split{Train: all[:40], Test: all[40:]}}
	b, err := NewBaselines().of(context.Background(), trial)
	if err != nil || b == nil || b.TestAccuracy < 0.9 {
		t.Fatalf("baseline %+v, error %v", b, err)
	}
	x, err := pooledFeatures(context.Background(), d, all[:40], 40)
	if err != nil {
		t.Fatal(err)
	}
	y := uniformTargets(d, all[:40])
	w, err := fitLogistic(context.Background(), x, y)
	if err != nil {
		t.Fatal(err)
	}
	largest := 0.0
	for j := range 7 {
		for class := range 3 {
			g := w.At(j, class) / 40
			for i := range 40 {
				sum, own := 0.0, 0.0
				for other := range 3 {
					z := 0.0
					for k := range 7 {
						z += x.At(i, k) * w.At(k, other)
					}
					if sum += math.Exp(z); other == class {
						own = math.Exp(z)
					}
				}
				g += x.At(i, j) * (own/sum - y.At(i, class)) / 40
			}
			largest = max(largest, math.Abs(g))
		}
	}
	if largest > 1e-4 {
		t.Errorf("the gradient is %g at the end", largest)
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
