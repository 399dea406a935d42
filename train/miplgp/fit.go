// The learner and its fit: a subset, its hyperparameters, and the posterior.

package miplgp

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/internal/resources"
	"github.com/miplc/miplc/train"
)

// Name is the kind of this learner in a spec.
const Name = "miplgp"

// Fit fits a Gaussian process per class to the instances of the training bags. The loss of an
// iteration is minus the log marginal likelihood per class and instance, as the solver computes it.
// The confidences of a bag are those of the instance that is most confident in a candidate, without
// the class of negatives. They are nil if hyper-parameters are learned on a subset. The seed of the problem
// replaces that of the settings. If ctx ends, Fit returns soon with an error that wraps that of ctx.
func Fit(ctx context.Context, s Settings, p *train.Problem, observe func(train.Iteration)) (train.FittedModel, error) {
	if s.Kernels.Kernels == nil {
		return nil, fmt.Errorf("bug: %s has no kernels to compute with", Name)
	}
	in, err := problemOf(p)
	if err != nil {
		return nil, err
	}
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

// bagConfidences returns [bags, classes] from the posterior means of the instances: the softmax over the candidates at
// the most confident instance.
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

// fit learns the hyper-parameters and returns the posterior. Equal arguments give equal bits. It calls
// observe after each iteration; iteration 0 is the start. If ctx ends, fit returns its error after the
// current piece of work.
func fit(ctx context.Context, p *problem, s Settings, observe func(iteration int, e *evaluation)) (q *posterior,
	err error) {
	if p.n() < 2 {
		return nil, fmt.Errorf("fitting needs at least 2 instances, the training bags have %d", p.n())
	}
	some := p.subset(s.Subset, s.Seed)
	learning := s
	if some != p {
		learning.Inducing = min(s.Inducing, max(minLearning, some.n()/10))
	}
	o, err := newObjective(ctx, some, learning)
	if err != nil {
		return nil, err
	}
	h, last, err := learn(ctx, o, some, s, observe)
	if err != nil {
		return nil, err
	}
	of := o
	if some != p {
		if of, err = newObjective(ctx, p, s); err != nil {
			return nil, err
		}
		last = newTargets(p, s.Epsilon)
	}
	if q, err = of.posterior(ctx, h, last); err != nil {
		return nil, err
	}
	q.kernels, q.samples, q.seed = s.Kernels, s.Samples, s.Seed
	return q, nil
}

// minLearning is the minimum number of inducing points for learning hyper-parameters on a subset.
// The default is a tenth of the subset's instances.
const minLearning = 50

// learn returns the hyper-parameters, and the targets that predictions use.
func learn(ctx context.Context, o objective, p *problem, s Settings, observe func(int, *evaluation)) (hyper, *targets,
	error) {
	length := s.Lengthscale
	if length == 0 {
		length = medianDistance(p, s.Seed)
	}
	r := firstRaw(p.outputs(), length)
	first, now := newTargets(p, s.Epsilon), newTargets(p, s.Epsilon)
	var step adam
	for t := 0; ; t++ {
		h := r.hyper()
		e, err := o.evaluate(ctx, h, now)
		if err != nil {
			return h, nil, err
		}
		observe(t, e)
		switch {
		case t == s.Iterations && s.Confidences == confidencesPrior:
			return h, first, nil
		case t == s.Iterations:
			return h, now, nil
		case s.Confidences == confidencesPrior:
			var prior []float64 // the constant means at the instances, class by class
			for _, m := range h.mean {
				prior = append(prior, slices.Repeat([]float64{m}, p.n())...)
			}
			now.setConfidences(prior, false)
		default:
			now.setConfidences(e.f, true)
		}
		rate := s.LR * (1 + math.Cos(math.Pi*float64(t)/float64(s.Iterations))) / 2
		step.descend(r, r.chain(e.grad), rate)
	}
}

// subset returns whole bags in a seeded order until size instances are reached. It returns all of p
// if size is 0 or at least the number of instances.
func (p *problem) subset(size int, seed uint64) *problem {
	if size == 0 || size >= p.n() {
		return p
	}
	bags := len(p.Candidates) / p.Classes
	of := make([][]int, bags)
	for i, b := range p.BagOf {
		of[b] = append(of[b], i)
	}
	some := &problem{Dim: p.Dim, Classes: p.Classes, Candidates: p.Candidates}
	for _, b := range ndarray.NewStream(seed, "miplgp subset").Perm(bags) {
		for _, i := range of[b] {
			some.X = append(some.X, p.X[i*p.Dim:(i+1)*p.Dim]...)
			some.BagOf = append(some.BagOf, b)
		}
		if some.n() >= max(2, size) {
			break
		}
	}
	return some
}

func newObjective(ctx context.Context, p *problem, s Settings) (objective, error) {
	n, m, outputs, solver := float64(p.n()), float64(min(s.Inducing, p.n())), float64(p.outputs()), s.solver(p.n())
	bytes, advice := map[string]float64{
		solverExact:    3 * 8 * n * n,                 // the kernel, its derivative and a factor
		solverCG:       2 * 4 * n * n,                 // distances and kernel
		solverInducing: 2*4*n*m + 8*m*m*(4+2*outputs), // distances and features; kernels and the sums of each class
	}[solver], "set solver: inducing, or use fewer instances"
	if solver == solverInducing {
		advice = "use fewer inducing points (inducing) or instances"
	}
	if err := resources.Memory().Check("fitting miplgp with solver: "+solver, bytes, advice); err != nil {
		return nil, err
	}
	switch solver {
	case solverExact:
		return newExact(p), nil
	case solverCG:
		return newCG(p, s)
	}
	return newInducing(ctx, p, s), nil
}

// medianPairs is the number of pairs for the median distance.
const medianPairs = 2000

// medianDistance returns the median distance between two instances over seeded pairs, or 1 if most
// instances are equal.
func medianDistance(p *problem, seed uint64) float64 {
	rng := ndarray.NewStream(seed, "miplgp lengthscale")
	found := make([]float64, medianPairs)
	for i := range found {
		a, b := rng.IntN(p.n()), rng.IntN(p.n()-1)
		if b >= a {
			b++
		}
		found[i] = squaredDistance(p.X[a*p.Dim:(a+1)*p.Dim], p.X[b*p.Dim:(b+1)*p.Dim])
	}
	slices.Sort(found)
	if m := found[medianPairs/2]; m > 0 {
		return math.Sqrt(m)
	}
	return 1
}
