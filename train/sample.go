package train

import (
	"fmt"
	"slices"
)

// Sample lays out the first steps of a training run exactly as they are fed to
// an engine, and the state that it starts from: for programs that take the same
// steps elsewhere. All steps are of the first epoch, so that the label weights
// of each are the first ones of its bags.
func Sample(t *Trial, steps int) (*State, []*Batch, error) {
	r := newRun(nil, t, 0)
	r.begin(1)
	chunks := r.Batches()
	if steps < 1 || steps > len(chunks) {
		return nil, nil, fmt.Errorf("%d steps are asked for, the first epoch of %s has %d", steps, t.Data.Name, len(chunks))
	}
	state, err := r.initial()
	if err != nil {
		return nil, nil, err
	}
	s := newStepwise(nil, r)
	var list []*Batch
	for bags, err := range s.feed.Load(chunks[:steps]) {
		if err != nil {
			return nil, nil, err
		}
		list = append(list, s.batch(bags, len(list)+1).clone())
	}
	return state, list, nil
}

// clone copies a batch out of the buffers of its feeder.
func (b *Batch) clone() *Batch {
	c := *b
	c.Instances, c.BagOf = slices.Clone(b.Instances), slices.Clone(b.BagOf)
	c.Candidates, c.Weights = slices.Clone(b.Candidates), slices.Clone(b.Weights)
	c.Masks = map[string][]float32{}
	for name, v := range b.Masks {
		c.Masks[name] = slices.Clone(v)
	}
	return &c
}
