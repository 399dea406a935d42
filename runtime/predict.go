package runtime

import (
	"context"
	"fmt"

	"github.com/miplc/miplc/internal/extent"
)

// Prediction is what a model says of one bag.
type Prediction struct {
	Label         int       `json:"label"`         // class with the largest probability, the first on ties
	Class         string    `json:"class"`         // its name
	Probabilities []float32 `json:"probabilities"` // [k], in the order of Info.Classes
	Attention     []float32 `json:"attention"`     // [n], score of each instance in [0, 1] (Eq. 2)
}

// Limits of one run of a batch model: its graph compares every instance with
// every bag, so cost and memory grow with their product.
const (
	maxRunBags      = 64
	maxRunInstances = 4096
)

// Predict predicts one bag. Errors wrap ErrEmptyBag, ErrBagShape, ErrNotFinite
// or ErrClosed, or are the context's: a context that has ended stops the
// prediction before it starts, not in its middle.
func (m *Model) Predict(ctx context.Context, bag Bag) (Prediction, error) {
	var p Prediction
	err := m.PredictInto(ctx, bag, &p)
	return p, err
}

// PredictInto is Predict into an existing prediction, whose slices are reused
// when they are large enough. After an error *p is not meaningful.
func (m *Model) PredictInto(ctx context.Context, bag Bag, p *Prediction) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := bag.check(m.info.InputShape); err != nil {
		return err
	}
	in := Input{Instances: bag.Instances, N: bag.N, Bags: 1}
	if m.batch {
		in.BagOf = make([]int64, bag.N)
	}
	k := len(m.info.Classes)
	if cap(p.Probabilities) < k || cap(p.Attention) < bag.N {
		both := make([]float32, k+bag.N)
		p.Probabilities, p.Attention = both[:k:k], both[k:]
	}
	p.Probabilities, p.Attention = p.Probabilities[:k], p.Attention[:bag.N]
	if err := m.run(in, Output{Probabilities: p.Probabilities, Attention: p.Attention}); err != nil {
		return err
	}
	return m.name(p)
}

// PredictAll predicts bags in order. A model of contract batch/1 takes many
// bags in one run; one of contract bag/1 is run bag by bag. An error names the
// bag by its index, counted from 0; there are no partial results.
func (m *Model) PredictAll(ctx context.Context, bags []Bag) ([]Prediction, error) {
	for i, b := range bags {
		if err := b.check(m.info.InputShape); err != nil {
			return nil, fmt.Errorf("bag %d: %w", i, err)
		}
	}
	all := make([]Prediction, len(bags))
	for from := 0; from < len(bags); {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		to := from + 1
		for n := bags[from].N; m.batch && to < len(bags) && to-from < maxRunBags && n+bags[to].N <= maxRunInstances; to++ {
			n += bags[to].N
		}
		if err := m.predictRun(bags[from:to], all[from:to]); err != nil {
			return nil, fmt.Errorf("bags %d to %d: %w", from, to-1, err)
		}
		from = to
	}
	return all, nil
}

// predictRun predicts checked bags in one run of the graph.
func (m *Model) predictRun(bags []Bag, to []Prediction) error {
	in := Input{Bags: len(bags)}
	for _, b := range bags {
		in.N += b.N
	}
	if len(bags) == 1 {
		in.Instances = bags[0].Instances
	} else {
		in.Instances = make([]float32, 0, in.N*extent.Size(m.info.InputShape))
		for _, b := range bags {
			in.Instances = append(in.Instances, b.Instances...)
		}
	}
	if m.batch {
		in.BagOf = make([]int64, 0, in.N)
		for i, b := range bags {
			for range b.N {
				in.BagOf = append(in.BagOf, int64(i))
			}
		}
	}
	k := len(m.info.Classes)
	out := Output{Probabilities: make([]float32, k*len(bags)), Attention: make([]float32, in.N)}
	if err := m.run(in, out); err != nil {
		return err
	}
	for i, at := 0, 0; i < len(bags); i++ {
		to[i].Probabilities = out.Probabilities[i*k : (i+1)*k : (i+1)*k]
		to[i].Attention = out.Attention[at : at+bags[i].N : at+bags[i].N]
		at += bags[i].N
		if err := m.name(&to[i]); err != nil {
			return err
		}
	}
	return nil
}

func (m *Model) run(in Input, out Output) error {
	m.closing.RLock()
	defer m.closing.RUnlock()
	if m.session == nil {
		return ErrClosed
	}
	if err := m.session.Run(in, out); err != nil {
		return fmt.Errorf("%s: %w", m.info.Backend, err)
	}
	return nil
}

// name finds the label. Numbers that are not finite would make label 0 of
// anything, so they are an error.
func (m *Model) name(p *Prediction) error {
	if i := firstNotFinite(p.Probabilities); i >= 0 {
		return fmt.Errorf("the model gives %v for class %d of this bag: %w", p.Probabilities[i], i, ErrNotFinite)
	}
	if i := firstNotFinite(p.Attention); i >= 0 {
		return fmt.Errorf("the model gives attention %v for instance %d of this bag: %w", p.Attention[i], i, ErrNotFinite)
	}
	p.Label = 0
	for i, v := range p.Probabilities {
		if v > p.Probabilities[p.Label] {
			p.Label = i
		}
	}
	p.Class = m.info.Classes[p.Label]
	return nil
}
