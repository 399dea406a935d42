// Learning rates, momenta and initial values.

package train_test

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/data/measure"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/train"
)

// The expected rates are those of PyTorch with lr=0.1: CosineAnnealingLR, LinearLR followed by it in
// SequentialLR or combined with StepLR in ChainedScheduler, MultiStepLR, and ReduceLROnPlateau (see
// testdata/pytorch/schedules.py).
func TestLearningRate(t *testing.T) {
	for name, c := range schedules(t) {
		s, err := language.Load("quickstart", append(c.Sets, "train.lr=0.1")...)
		if err != nil {
			t.Fatal(err)
		}
		for e, want := range c.Rates {
			if got := train.LearningRate(&s.Train, c.epochs(e)); math.Abs(got-want) > 1e-15 {
				t.Errorf("%s, epoch %d: %v, want %v", name, e+1, got, want)
			}
		}
	}
}

// schedule is a schedule with its rates, as written by testdata/pytorch/schedules.py.
type schedule struct {
	Sets          []string
	Losses, Rates []float64
}

// epochs returns the metrics of the first n epochs. The losses are values of train.decay_measure, if
// the schedule has one. Epochs that were not evaluated do not count.
func (c *schedule) epochs(n int) []train.Metrics {
	list := make([]train.Metrics, n)
	for i := range list {
		list[i] = train.Metrics{Loss: c.Losses[i], Measures: train.Measures{data.ValidationPart: measure.Values{
			"accuracy": c.Losses[i], "log_loss": c.Losses[i]}}}
	}
	return list
}

func schedules(t *testing.T) map[string]schedule {
	t.Helper()
	text, err := os.ReadFile("testdata/pytorch/schedules.json")
	if err != nil {
		t.Fatal(err)
	}
	list := map[string]schedule{}
	if err := json.Unmarshal(text, &list); err != nil || len(list) < 8 {
		t.Fatalf("%d schedules, %v", len(list), err)
	}
	return list
}

func TestLambda(t *testing.T) {
	tests := []struct {
		schedule string
		t        int
		want     float64
	}{
		{"linear", 0, 1}, {"linear", 1, 0.75}, {"linear", 4, 0},
		{"progressive", 1, 0}, {"averaging", 3, 1},
	}
	for _, tt := range tests {
		if got := train.Lambda(tt.schedule, tt.t, 4); got != tt.want {
			t.Errorf("%s at %d: %v, want %v", tt.schedule, tt.t, got, tt.want)
		}
	}
}

func TestInitialWeights(t *testing.T) {
	d := &data.Dataset{Classes: 3, Offsets: []int{0, 1, 2}, Candidates: []uint8{1, 0, 1, 1, 1, 1}}
	third := float32(1) / 3
	if got, want := train.InitialWeights(d), []float32{0.5, 0, 0.5, third, third, third}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestInitStateNormalization(t *testing.T) {
	d := &data.Dataset{Shape: []int{2}, Offsets: []int{0, 2, 3}, Instances: []float32{1, 5, 3, 5, 5, 8}}
	spec := &language.Spec{}
	p := &compile.Program{Spec: spec, Normalize: true}
	for normalize, want := range map[string][]float32{"training": {2, 5}, "all": {3, 6}} {
		spec.Data.Normalize.V = normalize
		if s, err := train.InitState(p, d, []int{0}, 1); err != nil || !slices.Equal(s.Params[compile.ParamMean], want) {
			t.Errorf("%s: %v, %v, want the mean %v", normalize, s, err, want)
		}
	}
	d.Instances[3] = -3e38
	if _, err := train.InitState(p, d, []int{0}, 1); err == nil ||
		!strings.Contains(err.Error(), "bag 1: feature 2 of instance 2 is -3e+38") {
		t.Errorf("a feature beyond float32: %v", err)
	}
	d.Instances[3] = 5
	p.Normalize = false
	if s, err := train.InitState(p, d, []int{0}, 1); err != nil || len(s.Params) != 0 {
		t.Errorf("statistics without normalisation: %v, %v", s, err)
	}
}

func TestInitParams(t *testing.T) {
	p := &compile.Program{Params: []compile.Param{
		{Name: "u", Shape: []int{100, 100}, Init: compile.Init{Kind: "uniform", Scale: 0.25}},
		{Name: "n", Shape: []int{10000}, Init: compile.Init{Kind: "normal", Scale: 2}},
		{Name: "c", Shape: []int{3}, Init: compile.Init{Kind: "constant", Scale: 1}},
	}}
	params := train.InitParams(p, 7)
	check := func(name string, limit, deviation float64) {
		sum, square := 0.0, 0.0
		for _, v := range params[name] {
			sum += float64(v)
			square += float64(v) * float64(v)
			if math.Abs(float64(v)) > limit {
				t.Fatalf("%s has %v", name, v)
			}
		}
		n := float64(len(params[name]))
		if mean := sum / n; math.Abs(mean) > 4*deviation/math.Sqrt(n) {
			t.Errorf("mean of %s is %v", name, mean)
		}
		if got := math.Sqrt(square / n); math.Abs(got-deviation) > 0.03*deviation {
			t.Errorf("deviation of %s is %v, want %v", name, got, deviation)
		}
	}
	check("u", 0.25, 0.25/math.Sqrt(3))
	check("n", 20, 2)
	if !slices.Equal(params["c"], []float32{1, 1, 1}) {
		t.Errorf("constant %v", params["c"])
	}
	// Each parameter has its own random stream: removing one does not change the others.
	p.Params = p.Params[1:]
	again := train.InitParams(p, 7)
	if !slices.Equal(again["n"], params["n"]) {
		t.Error("a parameter depends on other parameters")
	}
	if slices.Equal(train.InitParams(p, 8)["n"], params["n"]) {
		t.Error("two seeds give the same numbers")
	}
}
