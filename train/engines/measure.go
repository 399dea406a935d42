// Predictions of fitted learners for their reports.

package engines

import (
	"context"
	"fmt"
	"slices"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/data/measure"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/train"
)

// predict predicts bags, many at a time if the model can. sampled requests sampled predictions
// too.
func (f *fitLearner) predict(ctx context.Context, bags []int, sampled bool) ([]train.Prediction, error) {
	if m, ok := f.model.(train.Batcher); ok {
		return m.PredictBags(ctx, f.Data, bags, sampled)
	}
	list := make([]train.Prediction, len(bags))
	for i, bag := range bags {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		x, err := f.Data.Bag(bag)
		if err != nil {
			return nil, err
		}
		if list[i].Probabilities, list[i].Attention, err = f.model.Predict(x, f.Data.Size(bag)); err != nil {
			return nil, fmt.Errorf("prediction of bag %d of %s: %w", bag+1, f.Data.Name, err)
		}
	}
	return list, nil
}

// measure predicts all bags of the split and adds the measures to the metrics of the last
// iteration. sampled is the accuracy of sampled predictions on the test bags, nil if the learner
// has none.
func (f *fitLearner) measure(ctx context.Context) (sampled *float64, err error) {
	found := train.PartPredictions{}
	var byDraws []int
	scored := false // some bag has different scores
	for _, part := range f.Split.Parts() {
		list, err := f.predict(ctx, part.Bags, part.Name == data.TestPart)
		if err != nil {
			return nil, err
		}
		found[part.Name] = &train.Predictions{}
		for n, p := range list {
			scored = scored || slices.Max(p.Attention) != slices.Min(p.Attention)
			f.Add(found[part.Name], part.Bags[n], ndarray.Convert[float32](p.Probabilities),
				ndarray.Convert[float32](p.Attention))
			if p.Sampled != nil {
				byDraws = append(byDraws, measure.Argmax(p.Sampled))
			}
		}
	}
	f.RecordEvaluation(f.Epochs, f.pending, found)
	if !scored {
		f.Attention = nil
	}
	if byDraws == nil {
		return nil, nil
	}
	return f.Accuracy(f.Split.Test, byDraws), nil
}
