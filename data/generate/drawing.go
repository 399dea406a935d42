// Bags, drawn from pools of instances.

package generate

import (
	"iter"
	"math"
	"math/rand/v2"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/internal/resources"
)

// drawing is a dataset that is being generated.
type drawing struct {
	data.Dataset
}

// newDrawing starts a dataset.
func newDrawing(name string, shape []int, bags, classes int) *drawing {
	return &drawing{data.Dataset{
		Name: name, Shape: shape, Classes: classes,
		Offsets:    append(make([]int, 0, bags+1), 0),
		Candidates: make([]uint8, 0, bags*classes),
		Labels:     make([]int, 0, bags),
	}}
}

// checkMemory compares a lower bound of the memory for generating a dataset, and others bytes, with the available
// memory. A slice that grows is copied, so that it is in memory twice.
func checkMemory(name string, others float64, shape []int, instances float64, bags, classes int) error {
	instance := 4.0
	for _, e := range shape {
		instance *= float64(e)
	}
	drawn := 2 * (instances*(instance+8) + float64(bags)*(float64(classes)+16))
	return resources.Memory().Check("drawing "+name, others+drawn, "draw fewer or smaller bags")
}

func (d *drawing) addInstance(x []float32, label int, positive bool) {
	d.Instances = append(d.Instances, x...)
	if !positive {
		label = -1
	}
	d.InstLabels = append(d.InstLabels, label)
}

func (d *drawing) endBag(label int, candidates []uint8) {
	d.Offsets = append(d.Offsets, len(d.InstLabels))
	d.Candidates = append(d.Candidates, candidates...)
	d.Labels = append(d.Labels, label)
}

// endLabels ends a bag with several true labels.
func (d *drawing) endLabels(labels []int) {
	set := make([]uint8, d.Classes)
	for _, c := range labels {
		set[c] = 1
	}
	d.endBag(0, set)
	d.Multi, d.Labels = true, nil
}

// bagsByClass yields the bags 0 to bags-1 with their classes, in the order of the classes. Bag i
// has the class i % classes. The published datasets and their index files have this order;
// trainings shuffle the bags in every epoch.
func bagsByClass(bags, classes int) iter.Seq2[int, int] {
	return func(yield func(bag, class int) bool) {
		for class := range classes {
			for bag := class; bag < bags; bag += classes {
				if !yield(bag, class) {
					return
				}
			}
		}
	}
}

// drawPositives draws which of size instances are positive: the share, rounded, but at least one.
func drawPositives(r *rand.Rand, size int, share float64) []bool {
	n := min(max(int(math.Round(share*float64(size))), 1), size)
	out := make([]bool, size)
	for _, i := range r.Perm(size)[:n] {
		out[i] = true
	}
	return out
}
