// Package plaggd implements the partial-label learner PL-AGGD (D.-B. Wang, L. Li, M.-L. Zhang:
// Adaptive Graph Guided Disambiguation for Partial Label Learning, KDD 2019) on one vector per bag.
//
// X are the training vectors, X' the same with rows scaled to length 1, S the graph weights over
// nearest neighbours, P the labelling confidences and F the regression outputs. The learner
// minimises
//
//	J = |F - P|^2 + gamma |f|^2 + mu |P - S P|^2 + lambda |X' - S X'|^2
//
// alternately over S (each row has the weights of a mean of neighbours), P (rows are 0 outside the
// candidates and sum to 1) and f (kernel ridge regression with a bias). Each step lowers J. The
// first S is computed from the features, the first P from S.
package plaggd

import (
	"context"
	"fmt"

	"gonum.org/v1/gonum/mat"

	"github.com/miplc/miplc/internal/resources"
	"github.com/miplc/miplc/train"
)

// Vector defines how the instances of a bag become one vector.
type Vector string

const (
	Mean   Vector = "mean"   // mean of the instances, [d]
	MaxMin Vector = "maxmin" // maxima, then minima of each feature, [2d]
)

// Settings are the settings of the learner.
type Settings struct {
	Vector     Vector
	Neighbors  int     // of each training vector; with fewer training bags, all others
	Width      float64 // sigma of the kernel exp(-d^2 / (2 sigma^2)); 0: mean distance of two training vectors
	Gamma      float64 // above 0
	Lambda     float64 // at least 0
	Mu         float64 // above 0
	Iterations int     // rounds after the start, at least 0
}

// Name is the kind of this learner in a spec.
const Name = "pl-aggd"

// Fit implements the method of the package comment. The loss of an iteration is J. The spec language has checked the
// ranges of the settings. If ctx ends, Fit returns soon with an error that wraps that of ctx.
func Fit(ctx context.Context, s Settings, p *train.Problem, observe func(train.Iteration)) (train.FittedModel, error) {
	if len(p.Train) < 2 {
		return nil, fmt.Errorf("pl-aggd needs at least 2 training bags, %s has %d", p.Data.Name, len(p.Train))
	}
	m, err := newModel(s, p)
	if err != nil {
		return nil, err
	}
	f := &fit{ctx: ctx, set: s, candidates: candidates(p)}
	if err := f.start(m); err != nil {
		return nil, err
	}
	tell := func(i int) {
		if observe != nil {
			observe(train.Iteration{Number: i, Loss: f.loss(), Confidences: f.confidences.RawMatrix().Data})
		}
	}
	tell(0)
	for i := range s.Iterations {
		if err := f.round(); err != nil {
			return nil, err
		}
		tell(i + 1)
	}
	m.keep(f.ridge, &f.solution)
	return m, nil
}

// fit is a fit in progress.
type fit struct {
	ctx         context.Context
	set         Settings
	candidates  [][]int // of each training bag, ascending
	graph       *graphOf
	ridge       *ridge
	confidences *mat.Dense // P [m, k]
	solution    solution
}

// start computes the graph from the features, the confidences from the graph, and the first
// regression.
func (f *fit) start(m *model) error {
	err := resources.Memory().Check("fitting pl-aggd", bytesOfFit(len(f.candidates), f.set.Neighbors),
		"use fewer neighbours or bags, or another learner")
	if err != nil {
		return err
	}
	if f.graph, err = newGraph(f.ctx, unitRows(m.vectors), f.set.Neighbors); err != nil {
		return err
	}
	if err := f.graph.solve(f.ctx, 1, 0, nil); err != nil {
		return err
	}
	if f.ridge, err = newRidge(f.ctx, m, f.set); err != nil {
		return err
	}
	f.confidences = uniform(f.candidates, m.classes)
	problem := labelling{graph: f.graph, candidates: f.candidates}
	if err := problem.solve(f.ctx, f.confidences); err != nil {
		return err
	}
	f.solution = f.ridge.solve(f.confidences)
	return nil
}

// bytesOfFit returns the memory of the matrices of a fit on m bags: the kernel, which overwrites the distances, and its
// factor [m, m], the inner products [k, k], indices and weights of the neighbours of each bag, and three matrices [k,
// k] of the bag whose weights are being computed.
func bytesOfFit(bags, neighbors int) float64 {
	m, k := float64(bags), float64(min(neighbors, bags-1))
	return 8 * (2*m*m + m*(k*k+2*k) + 3*k*k)
}

// round updates graph, confidences and regression.
func (f *fit) round() error {
	if err := f.graph.solve(f.ctx, f.set.Lambda, f.set.Mu, f.confidences); err != nil {
		return err
	}
	problem := labelling{graph: f.graph, candidates: f.candidates, target: f.solution.outputs, pull: 1 / f.set.Mu}
	if err := problem.solve(f.ctx, f.confidences); err != nil {
		return err
	}
	f.solution = f.ridge.solve(f.confidences)
	return nil
}

// loss returns J.
func (f *fit) loss() float64 {
	return distance2(f.solution.outputs, f.confidences) + f.set.Gamma*f.solution.norm2 +
		f.set.Mu*f.graph.unevenness(f.confidences) + f.set.Lambda*f.graph.unevenness(f.graph.points)
}

// distance2 returns the squared Frobenius distance of two matrices of equal shape.
func distance2(a, b *mat.Dense) float64 {
	sum, y := 0.0, b.RawMatrix().Data
	for i, v := range a.RawMatrix().Data {
		sum += (v - y[i]) * (v - y[i])
	}
	return sum
}

// candidates lists the candidate labels of each training bag.
func candidates(p *train.Problem) [][]int {
	list := make([][]int, len(p.Train))
	for i, bag := range p.Train {
		list[i] = p.Data.CandidateList(bag)
	}
	return list
}

// uniform returns equal confidences for all candidates of a bag.
func uniform(candidates [][]int, classes int) *mat.Dense {
	p := mat.NewDense(len(candidates), classes, nil)
	for i, set := range candidates {
		for _, c := range set {
			p.Set(i, c, 1/float64(len(set)))
		}
	}
	return p
}
