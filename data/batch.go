// Batches of bags, and the selection of their instances.

package data

import (
	"slices"

	"github.com/miplc/miplc/internal/ndarray"
)

// Draw selects instances of the training bags of an epoch: N of each larger bag, without
// replacement. The selection depends only on Seed, Epoch and the bag, so that a resumed run trains
// on the same instances. A nil *Draw selects all instances.
type Draw struct {
	N     int
	Seed  uint64
	Epoch int
}

// Size returns the number of instances that are drawn from a bag with the given number of
// instances.
func (d *Draw) Size(instances int) int {
	if d == nil {
		return instances
	}
	return min(d.N, instances)
}

// instances returns the numbers of the instances of a bag in ascending order.
func (d *Draw) instances(bag, instances int) []int {
	selected := ndarray.NewStream(d.Seed, "instances", uint64(d.Epoch), uint64(bag)).Perm(instances)[:d.N]
	slices.Sort(selected)
	return selected
}

// Loaded contains the instances and candidate sets of some bags, concatenated. A Loader reuses its
// slices for the next batch.
type Loaded struct {
	Bags       []int     // [B] numbers of the bags in the dataset
	Instances  []float32 // [N, Dim]
	Shared     bool      // Instances share memory with the dataset, so they must not be changed
	BagOf      []int     // [N] index into Bags of the bag of each instance, ascending
	Candidates []float32 // [B, Classes] 1 for candidate labels, else 0

	own  []float32 // memory for Instances that are not shared
	half []byte    // instead of Instances: the numbers of 16 bits in the files
}

// assemble fills the batch with bags of d and reuses its memory. A whole bag in memory is not copied. It fails only for
// a dataset on disk.
func (b *Loaded) assemble(d *Dataset, bags []int, draw *Draw) error {
	if b.Shared {
		b.Instances, b.Shared = b.own, false
	}
	if len(bags) == 1 && !d.OnDisk() && draw.Size(d.Size(bags[0])) == d.Size(bags[0]) {
		b.own, b.Shared = b.Instances, true
		b.Instances, _ = d.Bag(bags[0])
		return b.fill(d, bags, draw, func(int, int) error { return nil })
	}
	b.Instances = b.Instances[:0]
	return b.fill(d, bags, draw, func(bag, n int) error {
		start, values := len(b.Instances), n*d.Dim()
		b.Instances = slices.Grow(b.Instances, values)[:start+values]
		if n == d.Size(bag) {
			return d.ReadRange(b.Instances[start:], bag, 0)
		}
		return d.ReadSelected(b.Instances[start:], bag, draw.instances(bag, d.Size(bag)))
	})
}

// assembleHalf fills the batch with bags of d, whose Store is a HalfStore, but reads b.half instead of
// b.Instances.
func (b *Loaded) assembleHalf(d *Dataset, bags []int) error {
	b.half = b.half[:0]
	return b.fill(d, bags, nil, func(bag, n int) error {
		start, bytes := len(b.half), 2*n*d.Dim()
		b.half = slices.Grow(b.half, bytes)[:start+bytes]
		return d.Store.(HalfStore).ReadHalf(b.half[start:], bag)
	})
}

// fill sets everything but the instances, which read appends: n of each bag.
func (b *Loaded) fill(d *Dataset, bags []int, draw *Draw, read func(bag, n int) error) error {
	b.Bags = append(b.Bags[:0], bags...)
	b.BagOf, b.Candidates = b.BagOf[:0], b.Candidates[:0]
	for index, bag := range bags {
		n := draw.Size(d.Size(bag))
		if err := read(bag, n); err != nil {
			return err
		}
		for range n {
			b.BagOf = append(b.BagOf, index)
		}
		for _, s := range d.CandidateMask(bag) {
			b.Candidates = append(b.Candidates, float32(s))
		}
	}
	return nil
}

// convert sets b to the batch that from.assembleHalf read.
func (b *Loaded) convert(d *Dataset, from *Loaded) {
	b.Bags, b.BagOf = append(b.Bags[:0], from.Bags...), append(b.BagOf[:0], from.BagOf...)
	b.Candidates, b.Instances = append(b.Candidates[:0], from.Candidates...), b.Instances[:0]
	half := from.half
	for _, bag := range b.Bags {
		start, values := len(b.Instances), d.Size(bag)*d.Dim()
		b.Instances = slices.Grow(b.Instances, values)[:start+values]
		number, _ := d.Store.(HalfStore).Half(bag)
		number.Floats(b.Instances[start:], half)
		half = half[2*values:]
	}
}

// Batches divides order into batches of size bags. The last batch may be smaller. The batches share
// the memory of order.
func Batches(order []int, size int) [][]int {
	return slices.Collect(slices.Chunk(order, size))
}
