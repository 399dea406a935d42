// The first steps of a trial, kept for comparisons.

package train

import (
	"fmt"
	"slices"
)

// FirstSteps returns the initial state of a training and the batches of its first steps exactly as
// engines get them, so that other programs can run the same steps. All steps are in the first
// epoch, so that they use the initial label weights.
func FirstSteps(t *Trial, steps int) (*State, []*Batch, error) {
	r := newRun(nil, t, 0)
	r.begin(1)
	chunks := r.Batches()
	if steps < 1 || steps > len(chunks) {
		return nil, nil, fmt.Errorf("%d steps requested, the first epoch of %s has %d", steps, t.Data.Name, len(chunks))
	}
	state, err := r.initial()
	if err != nil {
		return nil, nil, err
	}
	s := newStepwise(nil, r)
	var list []*Batch
	for bags, err := range s.feed.Load(chunks[:steps], t.instanceSample(1)) {
		if err != nil {
			return nil, nil, err
		}
		list = append(list, s.batch(bags, len(list)+1).clone())
	}
	return state, list, nil
}

// clone returns a copy that does not share memory with the feeder.
func (b *Batch) clone() *Batch {
	c := *b
	c.Instances, c.BagOf = slices.Clone(b.Instances), slices.Clone(b.BagOf)
	c.Candidates, c.LabelWeights = slices.Clone(b.Candidates), slices.Clone(b.LabelWeights)
	c.Masks = map[string][]uint8{}
	for name, v := range b.Masks {
		c.Masks[name] = slices.Clone(v)
	}
	return &c
}
