package data

import (
	"slices"

	"github.com/miplc/miplc/internal/stream"
)

// Order is the order in which an epoch goes through the bags: a shuffle of
// bags that depends on seed and epoch alone, so that a resumed run goes on as
// the unbroken one would.
func Order(bags []int, seed uint64, epoch int) []int {
	out := slices.Clone(bags)
	r := stream.New(seed, "shuffle", uint64(epoch))
	r.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}

// Batch is the instances and candidates of some bags, one after the other. The next
// assemble reuses its slices.
type Batch struct {
	Bags       []int     // [B] numbers of the bags in the set
	Instances  []float32 // [N, Dim]
	BagOf      []int     // [N] place in Bags of the bag of each instance, ascending
	Candidates []float32 // [B, Classes] 1 for candidate labels, else 0
}

// assemble fills the batch with the bags of d, reusing its memory. It fails only for bags
// that stay on disk.
func (b *Batch) assemble(d *Dataset, bags []int) error {
	b.Bags = append(b.Bags[:0], bags...)
	b.Instances, b.BagOf, b.Candidates = b.Instances[:0], b.BagOf[:0], b.Candidates[:0]
	for place, bag := range bags {
		start, n := len(b.Instances), d.Size(bag)*d.Dim()
		b.Instances = slices.Grow(b.Instances, n)[:start+n]
		if err := d.ReadRows(b.Instances[start:], bag, 0); err != nil {
			return err
		}
		for range d.Size(bag) {
			b.BagOf = append(b.BagOf, place)
		}
		for _, s := range d.CandidateSet(bag) {
			b.Candidates = append(b.Candidates, float32(s))
		}
	}
	return nil
}

// Batches cuts an order into batches of size bags; the last one may be smaller.
// The batches share the memory of order.
func Batches(order []int, size int) [][]int {
	return slices.Collect(slices.Chunk(order, size))
}
