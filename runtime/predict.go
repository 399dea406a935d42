// Predictions of one bag or of many, and what a prediction contains.

package runtime

import (
	"context"
	"fmt"
	"slices"

	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/ndarray"
)

// Prediction is the prediction for one bag.
type Prediction struct {
	Label int    `json:"label"` // class with the largest probability, the first on ties
	Class string `json:"class"` // name of the class
	// Labels are the classes with a probability above Info.Threshold, in ascending order, and
	// Classes their names. They are nil for a model that predicts one label per bag.
	Labels        []int     `json:"labels,omitzero"`
	Classes       []string  `json:"classes,omitzero"`
	Probabilities []float32 `json:"probabilities"` // [k], in the order of Info.Classes
	Attention     []float32 `json:"attention"`     // [n], score of each instance in [0, 1] (Eq. 2)
	// ClassAttention [k][n] has the score of each instance for each class. It is nil unless
	// Info.ClassAttention.
	ClassAttention [][]float32 `json:"class_attention,omitempty"`
}

// Predicted returns the predicted classes in ascending order: Labels, or only Label if the model
// predicts one label per bag.
func (p *Prediction) Predicted() []int {
	if p.Labels != nil {
		return p.Labels
	}
	return []int{p.Label}
}

// Limits of one run with several bags. The graph of a batch model compares every instance with
// every bag, and above about 16,384 features its values no longer fit the processor's cache, which
// costs more than sharing a run saves.
const (
	maxRunBags   = 16
	maxRunValues = 1 << 14 // per thread
)

// Predict predicts one bag. Errors wrap ErrEmptyBag, ErrBagShape, ErrNotFinite, ErrTooLarge or
// ErrClosed, or are those of the context. A context that ends stops the prediction, also during a
// long run. There is no other limit of the time: give a context with a deadline if the model or the
// bags come from others.
func (m *Model) Predict(ctx context.Context, bag Bag) (Prediction, error) {
	var p Prediction
	err := m.call(ctx, 1, bag.N, func(ctx context.Context, f *openFile) error { return f.predict(ctx, bag, &p) })
	return p, err
}

// PredictBatch predicts bags, in order, with the same results as Predict except for rounding. It
// stores the results in to, which has one element per bag, and returns it. It reuses the slices in to
// if they are large enough, and then allocates nothing. If to is nil, it makes a new one.
// Models of contract batch/1 predict many bags in one run, those of contract bag/1 one bag per run.
// Errors are those of Predict and contain the number of the bag, counted from 1. After an error,
// there are no partial results.
func (m *Model) PredictBatch(ctx context.Context, bags []Bag, to []Prediction) ([]Prediction, error) {
	if to == nil {
		to = make([]Prediction, len(bags))
	}
	if len(to) != len(bags) {
		return nil, fmt.Errorf("%s and %s: give one prediction for each bag", diag.Count(len(bags), "bag"),
			diag.Count(len(to), "prediction"))
	}
	instances := 0
	for _, b := range bags {
		instances += b.N
	}
	err := m.call(ctx, len(bags), instances, func(ctx context.Context, f *openFile) error {
		return f.predictBatch(ctx, bags, to)
	})
	if err != nil {
		return nil, err
	}
	return to, nil
}

func (f *openFile) predict(ctx context.Context, bag Bag, p *Prediction) error {
	if err := f.check(bag); err != nil {
		return err
	}
	to := []Prediction{*p}
	if err := f.run(ctx, []Bag{bag}, to); err != nil {
		return err
	}
	*p = to[0]
	return f.finish(p)
}

func (f *openFile) predictBatch(ctx context.Context, bags []Bag, to []Prediction) error {
	for i, b := range bags {
		if err := f.check(b); err != nil {
			return fmt.Errorf("bag %d (counted from 1): %w", i+1, err)
		}
	}
	for from := 0; from < len(bags); {
		end := from + f.bagsOfNextRun(bags[from:])
		if err := f.run(ctx, bags[from:end], to[from:end]); err != nil {
			return fmt.Errorf("bags %d to %d (counted from 1): %w", from+1, end, err)
		}
		from = end
	}
	for i := range to {
		if err := f.finish(&to[i]); err != nil {
			return fmt.Errorf("bag %d (counted from 1): %w", i+1, err)
		}
	}
	return nil
}

// bagsOfNextRun returns how many of the bags, from the first, share a run.
func (f *openFile) bagsOfNextRun(bags []Bag) int {
	if !f.batch {
		return 1
	}
	n := 1
	for values := len(bags[0].Instances); n < min(len(bags), maxRunBags); n++ {
		if values += len(bags[n].Instances); values > maxRunValues*f.options.sessionOptions.Threads {
			break
		}
	}
	return n
}

// run predicts checked bags in one run of the graph.
func (f *openFile) run(ctx context.Context, bags []Bag, to []Prediction) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if one := bags[0]; len(bags) == 1 && f.inChunks(one.N) {
		d := len(one.Instances) / one.N
		return f.runChunks(ctx, one.N, func(from, to int) ([]float32, error) { return one.Instances[from*d : to*d], nil },
			&to[0])
	}
	n := 0
	for i, b := range bags {
		to[i].resize(len(f.info.Classes), b.N, f.info.ClassAttention)
		n += b.N
	}
	if err := f.options.checkMemory(f.runBytes(bags)); err != nil {
		return err
	}
	watched := ctx
	if n <= f.brief {
		watched = context.Background()
	}
	if err := f.session.Run(watched, bags, to); err != nil {
		if ended := ctx.Err(); ended != nil {
			return ended
		}
		return fmt.Errorf("%s: %w", f.info.Backend, err)
	}
	return watched.Err() // also if the run was over before it could be stopped
}

// resize sets the lengths of the slices for k classes and n instances, and of the class attention if
// the model has it.
func (p *Prediction) resize(k, n int, classAttention bool) {
	if cap(p.Probabilities) < k || cap(p.Attention) < n {
		both := make([]float32, k+n)
		p.Probabilities, p.Attention = both[:k:k], both[k:]
	}
	p.Probabilities, p.Attention = p.Probabilities[:k], p.Attention[:n]
	if !classAttention {
		p.ClassAttention = nil
		return
	}
	if len(p.ClassAttention) != k || cap(p.ClassAttention[0]) < n {
		p.ClassAttention = slices.Collect(slices.Chunk(make([]float32, k*n), n))
	}
	for c := range p.ClassAttention {
		p.ClassAttention[c] = p.ClassAttention[c][:n]
	}
}

// setClassAttention copies the class attention [k, n] to its rows.
func (p *Prediction) setClassAttention(values []float32) {
	for _, row := range p.ClassAttention {
		values = values[copy(row, values):]
	}
}

// finish sets Label, Class, Labels and Classes. Values that are not finite are an error, because
// comparing them would always select label 0.
func (f *openFile) finish(p *Prediction) error {
	if i := ndarray.FirstNotFinite(p.Probabilities); i >= 0 {
		return fmt.Errorf("the model gives %v for class %q of this bag: %w", p.Probabilities[i], f.info.Classes[i],
			ErrNotFinite)
	}
	if i := ndarray.FirstNotFinite(p.Attention); i >= 0 {
		return fmt.Errorf("the model gives attention %v for instance %d of this bag: %w", p.Attention[i], i+1, ErrNotFinite)
	}
	for c, attention := range p.ClassAttention {
		if i := ndarray.FirstNotFinite(attention); i >= 0 {
			return fmt.Errorf("the model gives attention %v for instance %d and class %q of this bag: %w", attention[i], i+1,
				f.info.Classes[c], ErrNotFinite)
		}
	}
	p.Label = 0
	for i, v := range p.Probabilities {
		if v > p.Probabilities[p.Label] {
			p.Label = i
		}
	}
	p.Class = f.info.Classes[p.Label]
	f.setLabels(p)
	return nil
}

// setLabels sets the labels of a model that predicts any number of them.
func (f *openFile) setLabels(p *Prediction) {
	if f.info.Threshold == nil {
		p.Labels, p.Classes = nil, nil
		return
	}
	if p.Labels == nil {
		p.Labels, p.Classes = []int{}, []string{}
	}
	p.Labels, p.Classes = p.Labels[:0], p.Classes[:0]
	for i, v := range p.Probabilities {
		if float64(v) > *f.info.Threshold {
			p.Labels, p.Classes = append(p.Labels, i), append(p.Classes, f.info.Classes[i])
		}
	}
}
