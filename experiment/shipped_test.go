// Every learner of the shipped experiments compiles for each of its datasets.

package experiment

import (
	"testing"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/experiment/definition"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/specs"
)

// instances are the instance shapes of the datasets that the shipped experiments use.
var instances = map[string][]int{
	"mnist-mipl": {1, 28, 28}, "fmnist-mipl": {1, 28, 28}, "birdsong-mipl": {38}, "sival6-mipl": {30},
	"crc-row.npz": {9}, "crc-sbn.npz": {15}, "crc-kmeansseg.npz": {6}, "crc-sift.npz": {128},
}

// Every learner of the shipped experiments compiles for the bags of each of its datasets. Another
// test runs smoke.
func TestShippedExperimentsCompile(t *testing.T) {
	for _, name := range specs.Experiments() {
		if name == "smoke" {
			continue
		}
		e, err := definition.Load(name)
		if err != nil {
			t.Fatal(err)
		}
		loaded, err := loadSpecs(e)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range e.Data {
			source := d.File.V
			if d.Synth != nil {
				source = d.Synth.Set.V
			}
			shape := instances[source]
			if shape == nil {
				t.Fatalf("%s: the shape of %s is not known here", name, source)
			}
			set, split := twoBags(shape)
			for i := range e.Learners {
				l := &e.Learners[i]
				for _, r := range d.R {
					if !l.Has(d.Name.V, r) {
						continue
					}
					for _, v := range l.Variants() {
						c := Cell{Coord: l.On(d.Name.V, r, v), dataset: &sharedDataset{facts: SetFacts{Name: d.Name.V, R: r}}}
						c.grid = loaded[c.Coord]
						var errs diag.List
						if !checkCompiles(e, l, &c, set, []*data.Split{split}, &errs) {
							t.Errorf("%s: %v", name, errs)
						}
					}
				}
			}
		}
	}
}

// twoBags returns two bags of one instance each, with five classes.
func twoBags(shape []int) (*data.Dataset, *data.Split) {
	d := &data.Dataset{
		Name: "two bags", Shape: shape, Offsets: []int{0, 1, 2}, Classes: 5,
		Candidates: []uint8{1, 1, 0, 0, 0, 0, 1, 1, 0, 0}, Labels: []int{0, 1},
	}
	d.Instances = make([]float32, 2*d.Dim())
	return d, &data.Split{Train: []int{0}, Test: []int{1}}
}
