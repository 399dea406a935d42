package runs

import (
	"context"
	"fmt"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/train"
)

// scores are attention scores of bags as train.Scores sorts them.
type scores struct {
	train.Scores
	any bool // some bag has scores that are not all alike
}

// predictFunc predicts one bag of n instances, as learners.Model does.
type predictFunc func(instances []float32, n int) (probabilities, attention []float64, err error)

// predict gives the predicted class of each bag, and the attention scores.
func (f *fitted) predict(ctx context.Context, bags []int, by predictFunc) ([]int, scores, error) {
	var s scores
	predicted := make([]int, len(bags))
	for i, bag := range bags {
		if err := ctx.Err(); err != nil {
			return nil, s, err
		}
		p, a, err := by(f.in.Data.Bag(bag), f.in.Data.Size(bag))
		if err != nil {
			return nil, s, fmt.Errorf("prediction of bag %d of %s: %w", bag+1, f.in.Data.Name, err)
		}
		predicted[i] = largest(p)
		s.add(f.in.Data, bag, a)
	}
	return predicted, s, nil
}

// add sorts the scores of the instances of a bag by their kind.
func (s *scores) add(set *data.Dataset, bag int, attention []float64) {
	for i, v := range attention {
		s.any = s.any || v != attention[0]
		score, instance := float32(v), set.Offsets[bag]+i
		switch {
		case set.InstLabels == nil:
			s.Unknown = append(s.Unknown, score)
		case set.InstLabels[instance] >= 0 && (truth(set, bag) < 0 || truth(set, bag) == set.InstLabels[instance]):
			s.Positive = append(s.Positive, score)
		default:
			s.Negative = append(s.Negative, score)
		}
	}
}

func snapshot(epoch int, trained, tested scores) train.AttentionSnapshot {
	return train.AttentionSnapshot{Epoch: epoch, Train: trained.Scores, Test: tested.Scores}
}

// truth is the true label of a bag, -1 if not known.
func truth(set *data.Dataset, bag int) int {
	if set.Labels == nil {
		return -1
	}
	return set.Labels[bag]
}

// accuracyOf is the share of bags with predicted[i] as true label, nil if no
// true label is known.
func accuracyOf(set *data.Dataset, bags, predicted []int) *float64 {
	right, all := 0, 0
	for i, bag := range bags {
		if truth(set, bag) < 0 {
			continue
		}
		all++
		if predicted[i] == truth(set, bag) {
			right++
		}
	}
	if all == 0 {
		return nil
	}
	share := float64(right) / float64(all)
	return &share
}

// confusionOf counts bags by true and predicted class, [true][predicted].
func confusionOf(set *data.Dataset, bags, predicted []int) [][]int {
	matrix := make([][]int, set.Classes)
	for c := range matrix {
		matrix[c] = make([]int, set.Classes)
	}
	for i, bag := range bags {
		if c := truth(set, bag); c >= 0 {
			matrix[c][predicted[i]]++
		}
	}
	return matrix
}

// followedBags is how many training bags have the path of their confidences kept.
const followedBags = 6

// followed are the first training bags that have anything to disambiguate.
func followed(set *data.Dataset, bags []int) []train.Trajectory {
	var list []train.Trajectory
	for _, bag := range bags {
		var candidates []int
		for c, in := range set.CandidateSet(bag) {
			if in != 0 {
				candidates = append(candidates, c)
			}
		}
		if len(candidates) > 1 && len(list) < followedBags {
			list = append(list, train.Trajectory{Bag: bag + 1, Label: truth(set, bag), Candidates: candidates})
		}
	}
	return list
}

// largest is the index of the largest value, the first of equals.
func largest(values []float64) int {
	best := 0
	for i, v := range values {
		if v > values[best] {
			best = i
		}
	}
	return best
}
