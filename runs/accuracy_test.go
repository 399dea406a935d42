// The accuracies that a run reports are those of its model file, whichever engine trained it.

package runs

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/miplc/miplc/data/bagfile"
	"github.com/miplc/miplc/internal/testkit/enginetest"
	"github.com/miplc/miplc/internal/testkit/modeltest"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/runs/prepare"
	"github.com/miplc/miplc/runtime"
	"github.com/miplc/miplc/train"
	"github.com/miplc/miplc/train/engines"
)

// ofFile returns the accuracy of a model file, which predicts the bags one by one.
func ofFile(t *testing.T, dir string, trial *train.Trial, bags []int) float64 {
	t.Helper()
	model, err := runtime.Open(ModelPath(dir))
	if err != nil {
		t.Fatal(err)
	}
	defer model.Close()
	right := 0
	for _, bag := range bags {
		x, err := trial.Data.Bag(bag)
		if err != nil {
			t.Fatal(err)
		}
		p, err := model.Predict(context.Background(), runtime.Bag{Instances: x, N: trial.Data.Size(bag)})
		if err != nil {
			t.Fatal(err)
		}
		predicted := make([]byte, trial.Data.Classes)
		for _, class := range p.Predicted() {
			predicted[class] = 1
		}
		if bytes.Equal(predicted, trial.Data.TrueMask(bag)) {
			right++
		}
	}
	return float64(right) / float64(len(bags))
}

// The accuracies of a run are those of its model file, for every engine.
func TestAccuracyIsThatOfTheFile(t *testing.T) {
	t.Parallel()
	enginetest.Library(t)
	for seed := range uint64(40) {
		spec, err := language.Parse(fmt.Sprintf("random%d.yaml", seed), []byte(modeltest.RandomSpec(seed)))
		if err != nil {
			t.Fatal(err)
		}
		trials, err := prepare.Trials([]*language.Spec{spec}, bagfile.Folder{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		engine := []string{engines.Native, engines.Gorgonia}[seed%2]
		r, err := Train(context.Background(), trials, Task{Dir: dir, Place: engines.Place{Engine: engine}})
		if err != nil {
			t.Fatalf("random%d: %v", seed, err)
		}
		s, trial := r.Runs[0], trials[0]
		for _, part := range []struct {
			name string
			said *float64
			bags []int
		}{{"training", s.TrainAccuracy, trial.Split.Train}, {"test", s.TestAccuracy, trial.Split.Test}} {
			if want := ofFile(t, dir, trial, part.bags); part.said == nil || *part.said != want {
				t.Errorf("random%d on %s: accuracy on the %s bags %v, the file has %g", seed, engine, part.name, part.said, want)
			}
		}
	}
}
