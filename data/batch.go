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

// Batch holds bags one after the other. Its slices are reused by the next
// Assemble.
type Batch struct {
	Bags       []int     // [B] numbers of the bags in the set
	Instances  []float32 // [N, Dim]
	BagOf      []int     // [N] place in Bags of the bag of each instance, ascending
	Candidates []float32 // [B, Classes] 1 for candidate labels, else 0
}

// Assemble fills the batch with the bags of d, reusing its memory.
func (b *Batch) Assemble(d *Dataset, bags []int) {
	b.Bags = append(b.Bags[:0], bags...)
	b.Instances, b.BagOf, b.Candidates = b.Instances[:0], b.BagOf[:0], b.Candidates[:0]
	for place, bag := range bags {
		b.Instances = append(b.Instances, d.Bag(bag)...)
		for range d.Size(bag) {
			b.BagOf = append(b.BagOf, place)
		}
		for _, s := range d.CandidateSet(bag) {
			b.Candidates = append(b.Candidates, float32(s))
		}
	}
}

// Batches cuts an order into batches of size bags; the last one may be smaller.
// The batches share the memory of order.
func Batches(order []int, size int) [][]int {
	return slices.Collect(slices.Chunk(order, size))
}
