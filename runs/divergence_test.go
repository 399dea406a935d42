// The report of diverged runs raises no false alarm for shipped specs.

package runs

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/miplc/miplc/data/bagfile"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/runs/prepare"
	"github.com/miplc/miplc/train"
	"github.com/miplc/miplc/train/engines"
)

// No shipped spec is reported as diverged, even with a batch of one bag and twice its learning
// rate; those that standardise over the bags of a step have all bags in it, or seven.
func TestShippedSpecsDoNotDiverge(t *testing.T) {
	var list []*language.Spec
	whole := map[string]bool{"fastmipl": true, "uamipl": true}
	for _, name := range language.TrainedNames() {
		for _, times := range []float64{1, 2} {
			set := []string{"data.set=generated:prototypes", "data.generated.bags=30", "train.epochs=3"}
			switch {
			case slices.ContainsFunc(load(t, name).Model.Blocks, func(b language.Block) bool {
				return b.Kind.V == "batch_norm"
			}):
				set = append(set, "train.batch=7")
			case !whole[name]:
				set = append(set, "train.batch=1")
			}
			if len(load(t, name).Data.Shape.V) > 0 { // images
				set = []string{"data.set=generated:prototypes", "data.generated.features=784", "data.generated.bags=10",
					"data.generated.min_size=2",
					"data.generated.max_size=4", "train.epochs=1", "train.batch=1"}
			}
			list = append(list, load(t, name, append(set, fmt.Sprint("train.lr=", times*load(t, name).Train.LR.V))...))
		}
	}
	trials, err := prepare.Trials(list, bagfile.Folder{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	trainers := engines.NewTrainers(engines.Place{Engine: engines.Native})
	defer trainers.Close()
	trainers.Train(context.Background(), trials, train.Options{}, func(i int, out train.Outcome) {
		spec := trials[i].Program.Spec
		if out.Err != nil {
			t.Errorf("%s: %v", spec.Name.V, out.Err)
		} else if d := out.Report.Diverged; d != nil {
			t.Errorf("%s at learning rate %v: %v", spec.Name.V, spec.Train.LR.V, d)
		} else if out.Report.Metrics[0].StartLoss == nil {
			t.Errorf("%s: the loss of the first step is not recorded", spec.Name.V)
		}
	})
}
