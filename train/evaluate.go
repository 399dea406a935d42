package train

import (
	"fmt"

	"github.com/miplc/miplc/data"
)

// Scores are attention scores by the kind of their instance. An instance is
// positive if its label is the true label of its bag (any class, where the
// bag's label is not known), else negative; without instance labels all are
// Unknown.
type Scores struct {
	Positive []float32
	Negative []float32
	Unknown  []float32
}

// AttentionSnapshot holds the attention scores after one epoch.
type AttentionSnapshot struct {
	Epoch int
	Train Scores
	Test  Scores
}

// outcome is what a pass over some bags found.
type outcome struct {
	predicted []int // [bags]
	scores    Scores
}

// predict runs the inference graph over bags in batches.
func (t *trainer) predict(bags []int, tick func(batches int)) (*outcome, error) {
	out, k := &outcome{}, t.data.Classes
	for _, chunk := range data.Batches(bags, t.batchSize) {
		if err := t.ctx.Err(); err != nil {
			return nil, err
		}
		instances, bagOf := t.feed.raw(chunk)
		probabilities, attention, err := t.engine.Predict(instances, bagOf, len(chunk))
		if err != nil {
			return nil, fmt.Errorf("prediction of %s: %w", t.nameBags(chunk), err)
		}
		if len(probabilities) != len(chunk)*k || len(attention) != len(bagOf) {
			return nil, fmt.Errorf("engine %s gave %d probabilities and %d attention scores for %d bags of %d instances",
				t.engine.Name(), len(probabilities), len(attention), len(chunk), len(bagOf))
		}
		for i := range chunk {
			out.predicted = append(out.predicted, argmax(probabilities[i*k:(i+1)*k]))
		}
		t.sortScores(&out.scores, chunk, attention)
		tick(1)
	}
	return out, nil
}

// sortScores appends the scores of the instances of bags by their kind.
func (t *trainer) sortScores(s *Scores, bags []int, attention []float32) {
	at := 0
	for _, bag := range bags {
		for j := t.data.Offsets[bag]; j < t.data.Offsets[bag+1]; j++ {
			score := attention[at]
			at++
			switch {
			case t.data.InstLabels == nil:
				s.Unknown = append(s.Unknown, score)
			case t.positive(bag, j):
				s.Positive = append(s.Positive, score)
			default:
				s.Negative = append(s.Negative, score)
			}
		}
	}
}

func (t *trainer) positive(bag, instance int) bool {
	label := t.data.InstLabels[instance]
	if truth := t.truth(bag); truth >= 0 {
		return label == truth
	}
	return label >= 0
}

// truth is the true label of a bag, -1 if not known.
func (t *trainer) truth(bag int) int {
	if t.data.Labels == nil {
		return -1
	}
	return t.data.Labels[bag]
}

// accuracy is the share of bags with predicted[i] as true label, nil if no
// true label is known.
func (t *trainer) accuracy(bags, predicted []int) *float64 {
	var c counter
	for i, bag := range bags {
		c.add(t.truth(bag), predicted[i])
	}
	return c.share()
}

// disambiguation is the share of training bags whose largest label weight is
// on the true label.
func (t *trainer) disambiguation() *float64 {
	var c counter
	for _, bag := range t.opt.Split.Train {
		c.add(t.truth(bag), argmax(t.bagWeights(bag)))
	}
	return c.share()
}

// confusion counts bags by true and predicted class, [true][predicted].
func (t *trainer) confusion(bags, predicted []int) [][]int {
	matrix := make([][]int, t.data.Classes)
	for i := range matrix {
		matrix[i] = make([]int, t.data.Classes)
	}
	for i, bag := range bags {
		if truth := t.truth(bag); truth >= 0 {
			matrix[truth][predicted[i]]++
		}
	}
	return matrix
}

// counter counts right answers among those with a known truth.
type counter struct{ right, all int }

func (c *counter) add(truth, answer int) {
	if truth < 0 {
		return
	}
	c.all++
	if truth == answer {
		c.right++
	}
}

func (c *counter) share() *float64 {
	if c.all == 0 {
		return nil
	}
	v := float64(c.right) / float64(c.all)
	return &v
}

// argmax is the index of the largest value, the first of equals.
func argmax(values []float32) int {
	best := 0
	for i, v := range values {
		if v > values[best] {
			best = i
		}
	}
	return best
}
