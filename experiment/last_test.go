// The accuracy of a cell with the setting last is the mean of those of its last epochs.

package experiment

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/miplc/miplc/internal/diag"
)

// The accuracy of a cell with last: 2 is the mean of those of its last two epochs. Nothing
// depends on the number of epochs here, so shorter trainings have the accuracies of the epochs.
func TestMeanOfLastEpochs(t *testing.T) {
	for _, engine := range []string{"gorgonia", "native"} {
		t.Run(engine, func(t *testing.T) {
			o := Work{Dir: t.TempDir()}
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

// With validation bags the test bags are evaluated once, so an index file with validation bags
// excludes settings that need them after other epochs.
func TestValidationBagsOfAnIndexFile(t *testing.T) {
	index := filepath.ToSlash(filepath.Join(t.TempDir(), "index.csv"))
	rows := "split,part,bags\n1,train,1 2 3 4 5 6 7 8 9 10 11 12\n1,validation,13 14 15 16\n1,test,17 18 19 20\n"
	if err := os.WriteFile(index, []byte(rows), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ learner, experiment, want string }{
		{"last: 2", "", `test.yaml:6:88: learner "demipl": last is a mean over epochs`},
		{"", "attention: {epochs: [1]}", "test.yaml:4:90: P r=1: attention records scores of the test bags during training"},
		{"", "", ""},
	} {
		e := parse(t, `
name: index
data:
  - {name: P, synth: {set: prototypes, bags: 20, features: 4}, splits: {count: 1, index: "`+index+`"}}
learners:
  - {name: demipl, spec: demipl, set: {train.epochs: 2, train.engine: gorgonia}, `+c.learner+`}
`+c.experiment)
		_, w, err := run(t, e, Work{Dir: t.TempDir()})
		if c.want == "" {
			if err != nil {
				t.Error(err)
			}
			continue
		}
		if _, spec := errors.AsType[*diag.InvalidError](err); !spec || !strings.Contains(err.Error(), c.want) ||
			len(w.ran) > 0 {
			t.Errorf("%s %s: %v, want ...%s...", c.learner, c.experiment, err, c.want)
		}
	}
}
