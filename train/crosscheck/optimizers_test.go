package crosscheck_test

import (
	"fmt"
	"testing"

	"github.com/miplc/miplc/train/traintest"
)

// optimizers are settings of the update of the parameters, which every engine computes alike.
var optimizers = [][]string{
	{"train.clip=0.2"},
	{"train.clip=0.2", "train.momentum=0", "train.weight_decay=0.1"},
}

// Every update agrees with the interpreter's over twenty steps, of one bag and of three.
func TestOptimizers(t *testing.T) {
	t.Parallel()
	list, w := engines(t), map[string]map[string]float64{}
	for i, set := range optimizers {
		p := traintest.Shipped(t, "quickstart", set...)
		name := fmt.Sprint("quickstart ", set)
		compareTrajectories(t, name, p, list, w, 1e-5, 20, uint64(i), [][]int{{4}, {2}, {5}})
		p.Spec.Train.Batch.V = 3
		compareTrajectories(t, name+", three bags", p, list, w, 1e-5, 20, uint64(i), [][]int{{4, 1, 3}, {2, 5, 1}, {3}})
	}
	if !light {
		p := traintest.Shipped(t, "demipl-image", "train.clip=0.2") // bag by bag, with one update
		p.Spec.Train.Batch.V = 3
		compareTrajectories(t, "images", p, list, w, 1e-5, 3, 1, [][]int{{2, 1, 3}})
	}
	logWorst(t, w)
}
