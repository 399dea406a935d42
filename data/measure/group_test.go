// Measures by group.

package measure

import (
	"math"
	"slices"
	"strings"
	"testing"
)

// Groups have the mean probabilities of their bags, and labels and candidates on which these agree.
func TestByGroup(t *testing.T) {
	var p Predictions
	for _, b := range []struct {
		group              string
		p                  float32 // of the first class
		labels, candidates []uint8
	}{
		// mean 0.6
		{"right", 0.2, []uint8{1, 0}, []uint8{1, 1}}, {"right", 0.9, []uint8{1, 0}, []uint8{1, 0}}, {"right", 0.7, nil, nil},
		{"wrong", 0.9, []uint8{0, 1}, []uint8{0, 1}},
		{"differs", 1, []uint8{1, 0}, []uint8{1, 0}}, {"differs", 1, []uint8{0, 1}, []uint8{0, 1}},
		{"wrong", 0.6, []uint8{0, 1}, nil}, // mean 0.75
		{"unknown", 0.5, nil, nil},
	} {
		p.Add([]float32{b.p, 1 - b.p}, b.labels, b.candidates)
		p.AddGroup(b.group)
	}
	g := p.ByGroup()
	want := Predictions{
		Classes: 2, Probabilities: []float32{0.6, 0.4, 0.75, 0.25, 1, 0, 0.5, 0.5},
		Known: []bool{true, true, false, false}, Labels: []uint8{1, 0, 0, 1, 0, 0, 0, 0}, Candidates: []uint8{1, 0, 0, 1, 0,
			0, 0, 0},
	}
	near := func(a, b float32) bool { return math.Abs(float64(a-b)) < 1e-6 }
	if !slices.EqualFunc(g.Probabilities, want.Probabilities, near) || !slices.Equal(g.Known, want.Known) ||
		!slices.Equal(g.Labels, want.Labels) || !slices.Equal(g.Candidates, want.Candidates) {
		t.Errorf("groups %+v, want %+v", g, want)
	}
	values := p.Values()
	for name, want := range map[string]float64{
		"accuracy": 2. / 6, "group_accuracy": 1. / 2, "group_auroc": 0, "group_log_loss": -(math.Log(0.6) +
			math.Log(0.25)) / 2, "group_inside_candidates": 1. / 2,
	} {
		if math.Abs(values[name]-want) > 1e-6 {
			t.Errorf("%s is %v, want %v", name, values[name], want)
		}
	}
	if needs := Find("group_accuracy").Requires(); !strings.Contains(needs, "whose bags have the same true label") {
		t.Errorf("group_accuracy needs %s", needs)
	}
	if (&Predictions{}).ByGroup() != nil {
		t.Error("bags without groups have groups")
	}
}
