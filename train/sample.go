package train

import (
	"fmt"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/data"
)

// Sample lays out the first steps of a training run exactly as Run feeds them to
// its engine, and the state that it starts from: for programs that take the same
// steps elsewhere. All steps are of the first epoch, so that the label weights
// of each are the first ones of its bags.
func Sample(p *compile.Program, d *data.Dataset, split *data.Split, steps int) (*State, []*Batch, error) {
	seed := uint64(p.Spec.Train.Seed.V)
	t := &trainer{Record: Record{Epochs: p.Spec.Train.Epochs.V}, program: p, batchSize: max(1, p.Spec.Train.Batch.V)}
	chunks := data.Batches(data.Order(split.Train, seed, 1), t.batchSize)
	if steps < 1 || steps > len(chunks) {
		return nil, nil, fmt.Errorf("%d steps are asked for, the first epoch of %s has %d", steps, d.Name, len(chunks))
	}
	state := InitState(p, d, split.Train, seed)
	t.feed = feeder{program: p, data: d, seed: seed, mean: state.Params[compile.ParamMean], std: state.Params[compile.ParamStd]}
	weights := InitialWeights(d)
	list := make([]*Batch, steps)
	for i := range list {
		b := *t.feed.step(chunks[i], weights, 1, i+1)
		b.Lambda = Lambda(p.Spec.Weights.Schedule.V, t.number(1), t.Epochs)
		b.LR = LearningRate(p.Spec.Train.Schedule.V, p.Spec.Train.LR.V, 0, t.Epochs)
		b.Epoch, b.Epochs = t.number(1), t.Epochs
		list[i] = b.clone()
	}
	return state, list, nil
}

// clone copies a batch out of the buffers of its feeder.
func (b *Batch) clone() *Batch {
	c := *b
	c.Instances = append([]float32{}, b.Instances...)
	c.BagOf = append([]int{}, b.BagOf...)
	c.Candidates = append([]float32{}, b.Candidates...)
	c.Weights = append([]float32{}, b.Weights...)
	c.Masks = map[string][]float32{}
	for name, v := range b.Masks {
		c.Masks[name] = append([]float32{}, v...)
	}
	return &c
}
