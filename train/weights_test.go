// Factors of the classes.

package train

import (
	"math"
	"testing"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/language"
)

// If every bag has one candidate, balanced gives the weights of scikit-learn's
// compute_class_weight, n / (k n_c). A list is divided by its mean over the training bags.
func TestClassWeights(t *testing.T) {
	d := &data.Dataset{Classes: 3, Offsets: []int{0, 1, 2, 3, 4}, Candidates: []uint8{1, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1}}
	ambiguous := &data.Dataset{Classes: 2, Offsets: []int{0, 1, 2}, Candidates: []uint8{1, 1, 0, 1}}
	// With several labels, class weights are the factors of the true labels, as pos_weight of PyTorch.
	multi := &data.Dataset{Classes: 3, Multi: true, Offsets: []int{0, 1, 2, 3, 4}, Candidates: []uint8{1, 1, 0, 0, 1, 0, 0,
		1, 0, 0, 0, 0}}
	tests := []struct {
		set  string
		data *data.Dataset
		bags []int
		want []float32
	}{
		{"balanced", d, []int{0, 1, 2, 3}, []float32{4. / 6, 4. / 3, 4. / 3}},
		{"balanced", d, []int{0, 1, 2}, []float32{0.75, 1.5, 0}},
		{"[1, 2, 4]", d, []int{0, 1, 2, 3}, []float32{0.5, 1, 2}},
		{"balanced", ambiguous, []int{0, 1}, []float32{2, 2. / 3}}, // 1/2 and 3/2 bags
		{"balanced", multi, []int{0, 1, 2, 3}, []float32{3, 1. / 3, 1}},
		{"[2, 4, 8]", multi, []int{0, 1, 2, 3}, []float32{2, 4, 8}},
	}
	for _, tt := range tests {
		spec, err := language.Load("quickstart", "train.class_weights="+tt.set)
		if err != nil {
			t.Fatal(err)
		}
		trial := &Trial{Program: &compile.Program{Spec: spec}, Data: tt.data, Split: &data.Split{Train: tt.bags}}
		got := trial.classWeights()
		for class, want := range tt.want {
			if math.Abs(float64(got[class]-want)) > 1e-6 {
				t.Errorf("%s on the bags %v: %v, want %v", tt.set, tt.bags, got, tt.want)
				break
			}
		}
	}
}

// An update averages the gradients of train.accumulate steps, the last one of an epoch those of the
// remaining steps.
func TestPositions(t *testing.T) {
	spec, err := language.Load("quickstart", "train.accumulate=4")
	if err != nil {
		t.Fatal(err)
	}
	r := &Run{Record: Record{Trial: &Trial{Program: &compile.Program{Spec: spec}}}, steps: 10, now: Metrics{Epoch: 2}}
	for step, want := range map[int]compile.Position{
		1: {Update: 4, Steps: 4, Pending: true}, 4: {Update: 4, Steps: 4}, 5: {Update: 5, Steps: 4, Pending: true},
		9: {Update: 6, Steps: 2, Pending: true}, 10: {Update: 6, Steps: 2},
	} {
		if got := r.Position(step); got != want {
			t.Errorf("step %d: %+v, want %+v", step, got, want)
		}
	}
}
