// Findings in the numbers of a run.

package judge

import (
	"math"
	"strings"
	"testing"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/data/measure"
	"github.com/miplc/miplc/train"
)

func TestClassesThatAreNeverPredicted(t *testing.T) {
	classes := []measure.Class{{Name: "cat", Support: 5}, {Name: "dog", Support: 4},
		{Name: "cow", Support: 9, Predicted: 9}}
	j := &judged{Evaluation: &train.Evaluation{DetailOf: data.TestPart, Detail: &measure.Detail{
		Accuracy: &measure.ConfidenceInterval{}, Confusion: [][]int{}, Classes: classes}}}
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
	judge := func(labeled int, best, last float64) *judged {
		d := &data.Dataset{Classes: 2, Offsets: make([]int, 201), Labels: make([]int, 200), Candidates: make([]uint8, 400)}
		for bag := range d.Labels {
			d.Labels[bag] = -1
			if bag%100 < labeled {
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
				DetailOf: data.TestPart, Detail: &measure.Detail{Accuracy: &measure.ConfidenceInterval{Low: 0.4, High: 0.8},
					Confusion: [][]int{{labeled / 2, 0}, {0, labeled / 2}},
					Classes:   []measure.Class{{Support: labeled / 2}, {Support: labeled / 2}}}}}
	}
	for _, c := range []struct {
		labeled    int
		best, last float64
		found      bool
	}{{100, 0.667, 0.4, true}, {12, 0.667, 0.5, false}, {12, 1, 0.85, false}, {100, 1, 0.85, true}} {
		j := judge(c.labeled, c.best, c.last)
		_, fallen := j.fallen()
		_, differ := j.disagreement()
		if (fallen != "") != c.found || differ != "" && !c.found {
			t.Errorf("%+v: %q, %q", c, fallen, differ)
		}
		if _, text := j.uncertain(); c.labeled < 100 &&
			!strings.HasPrefix(text, "12 test bags with a true label are too few") {
			t.Error(text)
		}
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
