// A model finds the parts of its split in a dataset, also away from the folder of its run.

package runs

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/data/generate"
)

// A model away from its folder finds the parts of a random split again, stratified or not.
func TestRedrawSplit(t *testing.T) {
	set, err := generate.Prototypes(generate.DefaultPrototypes)
	if err != nil {
		t.Fatal(err)
	}
	for _, stratify := range []bool{false, true} {
		split, err := data.RandomSplit(set.Bags(), set.TrueLists(), data.SplitSettings{Train: 0.7, Seed: 3,
			Stratify: stratify})
		if err != nil {
			t.Fatal(err)
		}
		again := redrawSplit(split.Source, set)
		if again == nil || !slices.Equal(again.Train, split.Train) {
			t.Errorf("%s: drawn again as %+v", split.Source, again)
		}
	}
	for _, source := range []string{"index1.mat", filepath.Join("a b", "c.csv, split 1"), "random 2, seed 1",
		"sorted 0.7, seed 1"} {
		if s := redrawSplit(source, set); s != nil {
			t.Errorf("%s: drawn again as %+v", source, s)
		}
	}
}
