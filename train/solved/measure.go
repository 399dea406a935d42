package solved

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
func (f *fit) predict(ctx context.Context, bags []int, by predictFunc) (out *train.Predictions, scored bool, err error) {
	out = &train.Predictions{}
	for _, bag := range bags {
		if err := ctx.Err(); err != nil {
			return nil, false, err
		}
		p, a, err := by(f.Data.Bag(bag), f.Data.Size(bag))
		if err != nil {
			return nil, false, fmt.Errorf("prediction of bag %d of %s: %w", bag+1, f.Data.Name, err)
		}
		scores := make([]float32, len(a))
		for i, v := range a {
			scored = scored || v != a[0]
			scores[i] = float32(v)
		}
		f.Add(out, bag, train.Argmax(p), scores)
	}
	return out, scored, nil
}

// measure predicts all bags of the split into the metrics of the last iteration.
// sampled is the accuracy on the test bags by draws, where the learner predicts
// so too.
func (f *fit) measure(ctx context.Context) (sampled *float64, err error) {
	var found [2]*train.Predictions
	scored := false
	for i, bags := range [][]int{f.Split.Train, f.Split.Test} {
		out, any, err := f.predict(ctx, bags, f.model.Predict)
		if err != nil {
			return nil, err
		}
		found[i], scored = out, scored || any
	}
	f.Evaluated(f.Epochs, f.held, found)
	if !scored {
		f.Attention = nil
	}
	s, ok := f.model.(learners.Sampler)
	if !ok {
		return nil, nil
	}
	out, _, err := f.predict(ctx, f.Split.Test, s.Sampled)
	if err != nil {
		return nil, err
	}
	return f.Accuracy(f.Split.Test, out.Predicted), nil
}
