// Batches of bags, and the dropout masks of a step.

package train

import (
	"math"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/internal/ndarray"
)

// feeder converts bags to batches. The next batch reuses its buffers.
type feeder struct {
	program *compile.Program
	data    *data.Dataset
	*data.Loader
	largest   int       // instances of the largest batch
	mean, std []float32 // [Dim]; nil: no normalisation
	seed      uint64
	batch     Batch
}

// step returns the batch of one training step. It normalises the instances in place and copies
// the rows of weights [bags of the dataset, classes] that belong to the bags. Epoch and step,
// both counted from 1, select the dropout masks.
func (f *feeder) step(bags *data.Loaded, weights []float32, epoch, step int) *Batch {
	b, k := &f.batch, f.data.Classes
	b.Instances, b.BagOf = bags.Instances, bags.BagOf
	b.Bags, b.Candidates = len(bags.Bags), bags.Candidates
	if f.mean != nil {
		dim := f.data.Dim()
		for row := b.Instances; len(row) > 0; row = row[dim:] {
			for i, mean := range f.mean {
				row[i] = (row[i] - mean) / f.std[i]
			}
		}
	}
	b.LabelWeights = b.LabelWeights[:0]
	for _, bag := range bags.Bags {
		b.LabelWeights = append(b.LabelWeights, weights[bag*k:(bag+1)*k]...)
	}
	f.masks(epoch, step)
	return b
}

// masks draws the dropout masks of a step into the batch.
func (f *feeder) masks(epoch, step int) {
	if f.batch.Masks == nil {
		f.batch.Masks = map[string][]uint8{}
	}
	for i := range f.program.Masks {
		m := &f.program.Masks[i]
		n := ndarray.Size(m.Shape.Concrete(len(f.batch.BagOf), f.batch.Bags))
		values := f.batch.Masks[m.Name]
		// Allocate for the largest batch at once: if masks grew, an old and a new one would be in memory together.
		if cap(values) < n {
			values = make([]uint8, n, max(n, ndarray.Size(m.Shape.Concrete(f.largest, f.batch.Bags))))
		}
		DrawMask(values[:n], m, f.seed, epoch, step)
		f.batch.Masks[m.Name] = values[:n]
	}
}

// DrawMask draws the dropout mask of a step: 0 with probability m.Drop, else 1. Epoch and step count
// from 1.
func DrawMask(mask []uint8, m *compile.Mask, seed uint64, epoch, step int) {
	const bits = 53 // random bits of an element, as many as rand.Float64 uses; integers need no division and no branch
	drop := uint64(math.Ceil(m.Drop * (1 << bits)))
	source := ndarray.Stream(seed, m.Name, uint64(epoch), uint64(step))
	for i := range mask {
		number := source.Uint64() << (64 - bits) >> (64 - bits)
		mask[i] = uint8((drop - 1 - number) >> 63) // the sign bit: number >= drop
	}
}
