package miplgp

import (
	"context"
	"math"
	"slices"

	"github.com/miplc/miplc/stream"
)

// Progress tells of a fit: iteration 0 is the start.
type Progress struct {
	Iteration int
	// Loss is minus the log marginal likelihood by class and instance; each
	// solver has its own bound or approximation of it.
	Loss float64
	// F are the posterior means at the instances, class by class.
	F []float64
}

// Fit learns the hyper-parameters and gives the posterior. The same arguments
// give the same bits. observe may be nil. When ctx ends Fit returns its error
// within one piece of work.
func Fit(ctx context.Context, p *Problem, s Settings, observe func(Progress)) (*Posterior, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	if err := p.check(); err != nil {
		return nil, err
	}
	o, err := newObjective(ctx, p, s)
	if err != nil {
		return nil, err
	}
	length := s.Lengthscale
	if length == 0 {
		length = medianDistance(p, s.Seed)
	}
	r := firstRaw(p.outputs(), length)
	first := newTargets(p, s.Epsilon)
	now := first.clone()
	var step adam
	for t := 0; ; t++ {
		h := r.hyper()
		e, err := o.evaluate(ctx, h, now)
		if err != nil {
			return nil, err
		}
		if observe != nil {
			observe(Progress{t, e.loss, e.f})
		}
		if t == s.Iterations {
			break
		}
		if s.Reading == ReadingPaper {
			now.renew(e.f, true)
		} else {
			now.renew(priorMeans(h, p.n()), false)
		}
		step.descend(r, r.chain(e.grad), cosine(s.LR, t, s.Iterations))
	}
	if s.Reading == ReadingProgram {
		now = first
	}
	q, err := o.posterior(ctx, r.hyper(), now)
	if err != nil {
		return nil, err
	}
	q.samples, q.seed = s.Samples, s.Seed
	return q, nil
}

func newObjective(ctx context.Context, p *Problem, s Settings) (objective, error) {
	switch s.solver(p.n()) {
	case SolverExact:
		return newExact(p), nil
	case SolverCG:
		return newCG(ctx, p, s)
	}
	return newInducing(p, s), nil
}

// priorMeans are the constant means at n instances, class by class.
func priorMeans(h hyper, n int) []float64 {
	f := make([]float64, 0, n*len(h.mean))
	for _, m := range h.mean {
		f = append(f, slices.Repeat([]float64{m}, n)...)
	}
	return f
}

// medianPairs is the number of pairs that the median distance is taken over.
const medianPairs = 2000

// medianDistance between two instances, over seeded pairs; 1 if most instances
// are the same.
func medianDistance(p *Problem, seed uint64) float64 {
	rng := stream.New(seed, "miplgp lengthscale")
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
