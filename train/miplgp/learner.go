// The learner MIPLGP as train.Learner.

package miplgp

import (
	"context"
	"fmt"
	"slices"

	"github.com/miplc/miplc/train"
)

// Name is the kind of this learner in a spec.
const Name = "miplgp"

type learner struct{ s Settings }

// New returns the learner. Fit replaces the seed of the settings by that of the problem.
func New(s Settings) train.Learner { return &learner{s} }

func (l *learner) Name() string    { return Name }
func (l *learner) Iterations() int { return l.s.Iterations }

// Fit fits a Gaussian process per class to the instances of the training bags. The loss of an
// iteration is minus the log marginal likelihood per class and instance, as the solver computes it.
// The confidences of a bag are those of the instance that is most confident in a candidate, without
// the class of negatives. They are nil if hyper-parameters are learned on a subset.
func (l *learner) Fit(ctx context.Context, p *train.Problem, observe func(train.Iteration)) (train.FittedModel, error) {
	if l.s.Runner == nil {
		return nil, fmt.Errorf("bug: %s has no device to compute on", Name)
	}
	in, err := problemOf(p)
	if err != nil {
		return nil, err
	}
	s := l.s
	s.Seed = p.Seed
	q, err := fit(ctx, in, s, func(iteration int, e *evaluation) {
		if observe == nil {
			return
		}
		i := train.Iteration{Number: iteration, Loss: e.loss}
		if len(e.f) == in.n()*in.outputs() {
			i.Confidences = in.bagConfidences(e.f)
		}
		observe(i)
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", Name, err)
	}
	return &model{posterior: q, shape: p.Data.Shape, z: p.Normalization}, nil
}

// bagConfidences returns [bags, classes] from the posterior means of the
// instances: the softmax over the candidates at the most confident instance.
func (p *problem) bagConfidences(f []float64) []float64 {
	best := make([]float64, len(p.Candidates)/p.Classes)
	out := make([]float64, len(p.Candidates))
	row := make([]float64, p.Classes)
	for i, b := range p.BagOf {
		p.confidences(i, f, row)
		if top := slices.Max(row); top > best[b] {
			best[b] = top
			copy(out[b*p.Classes:], row)
		}
	}
	return out
}
