package experiment

import (
	"math"
	"testing"

	"github.com/miplc/miplc/runtime/ortlib/ortest"
)

// The accuracy of a cell with last: 2 is the mean of those of its last two epochs. Nothing
// depends on the number of epochs here, so shorter trainings have the accuracies of the epochs.
func TestMeanOfLastEpochs(t *testing.T) {
	for _, engine := range []string{"gorgonia", "ort"} {
		t.Run(engine, func(t *testing.T) {
			o := Options{Dir: t.TempDir()}
			if engine == "ort" {
				o.Library = ortest.Library(t)
			}
			set := "weights.schedule: averaging, train.schedule: constant, train.lr: 0.02, train.engine: " + engine
			e := parse(t, `
name: last
data:
  - {name: P, synth: {set: prototypes, bags: 200, classes: 3}}
learners:
  - {name: two, spec: demipl, set: {train.epochs: 2, `+set+`}}
  - {name: three, spec: demipl, set: {train.epochs: 3, `+set+`}}
  - {name: mean, spec: demipl, set: {train.epochs: 3, `+set+`}, last: 2}
splits: {count: 1}
`)
			if _, _, err := run(t, e, o); err != nil {
				t.Fatal(err)
			}
			of := map[string]float64{}
			for _, r := range accuracies(t, o.Dir) {
				of[r.Learner] = r.Accuracy
			}
			if want := (of["two"] + of["three"]) / 2; of["two"] == of["three"] || math.Abs(of["mean"]-want) > 1e-12 {
				t.Errorf("the accuracies are %v", of)
			}
		})
	}
}
