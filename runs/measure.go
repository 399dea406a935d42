package runs

import (
	"context"
	"fmt"

	"github.com/miplc/miplc/learners"
	"github.com/miplc/miplc/train"
)

// predictFunc predicts one bag of n instances, as learners.Model does.
type predictFunc func(instances []float32, n int) (probabilities, attention []float64, err error)

// predict gives the predicted class of each bag, and the attention scores.
// scored reports whether some bag has scores that are not all alike.
func (f *fitted) predict(ctx context.Context, bags []int, by predictFunc) (out *train.Outcome, scored bool, err error) {
	out = &train.Outcome{}
	for _, bag := range bags {
		if err := ctx.Err(); err != nil {
			return nil, false, err
		}
		p, a, err := by(f.in.Data.Bag(bag), f.in.Data.Size(bag))
		if err != nil {
			return nil, false, fmt.Errorf("prediction of bag %d of %s: %w", bag+1, f.in.Data.Name, err)
		}
		for _, v := range a {
			scored = scored || v != a[0]
		}
		f.record.Add(out, bag, train.Argmax(p), float32s(a))
	}
	return out, scored, nil
}

// measure predicts all bags of the split into the metrics of the last iteration.
func (f *fitted) measure(ctx context.Context, m *train.Metrics) error {
	var found [2]*train.Outcome
	scored := false
	for i, bags := range [][]int{f.in.Split.Train, f.in.Split.Test} {
		out, any, err := f.predict(ctx, bags, f.model.Predict)
		if err != nil {
			return err
		}
		found[i], scored = out, scored || any
	}
	f.record.Evaluated(f.record.Epochs, m, found)
	if !scored {
		f.record.Attention = nil
	}
	s, ok := f.model.(learners.Sampler)
	if !ok {
		return nil
	}
	sampled, _, err := f.predict(ctx, f.in.Split.Test, s.Sampled)
	if err == nil {
		f.sampled = f.record.Accuracy(f.in.Split.Test, sampled.Predicted)
	}
	return err
}
