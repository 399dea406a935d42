// Package miplgp is MIPLGP, the Gaussian process for multi-instance
// partial-label learning (Tang, Zhang, Zhang: "Multi-instance partial-label
// learning: towards exploiting dual inexact supervision"; the learner the
// DEMIPL paper compares with).
//
// Every instance of a bag takes the bag's candidate set and one class more, the
// class of negative instances. Its confidences over that set become Dirichlet
// parameters, and those become the targets and noise variances of one Gaussian
// process per class (Settings.Confidences says how they are renewed). A bag takes
// the class of its most confident instance, the class of negatives left out.
package miplgp

import (
	"fmt"
	"slices"

	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/learners"
)

// Names of the solvers of the linear systems.
const (
	solverAuto     = "auto"     // by the number of instances, see Settings.solver
	solverExact    = "exact"    // Cholesky in float64
	solverCG       = "cg"       // preconditioned conjugate gradients, float32 kernel
	solverInducing = "inducing" // variational inducing points
)

// Where the confidences of an iteration come from.
const (
	// confidencesPrior is what the authors' program does: the confidences follow
	// the constant prior means. They change the targets by which the
	// hyper-parameters are learned; the noise, and the targets that predictions
	// use, stay those of uniform confidences.
	confidencesPrior = "prior"
	// confidencesPosterior follow the posterior mean at each instance; targets
	// and noise follow them, and predictions use the last ones. The class of
	// negatives, a candidate everywhere, tends to take all instances.
	confidencesPosterior = "posterior"
)

// Settings of a fit. The zero value is not usable; the spec language has defaults and
// ranges.
type Settings struct {
	Iterations  int     // steps of Adam
	LR          float64 // of the first step; falls to 0 along a cosine
	Epsilon     float64 // what a Dirichlet parameter has beside its confidence
	Samples     int     // draws of the posterior for a sampled prediction
	Solver      string  // "auto", "exact", "cg" or "inducing"
	Inducing    int     // inducing points; with cg: points that carry the variance
	Probes      int     // cg: random vectors of the trace estimates
	Rank        int     // cg: rank of the preconditioner
	Tolerance   float64 // cg: residual of a system over that of its right side
	Confidences string  // "prior" or "posterior"
	Subset      int     // instances, in whole bags, that the hyper-parameters are learned on; 0: all
	Lengthscale float64 // first value, in units of the instances; 0: median distance between instances
	Seed        uint64
	// Device computes conjugate gradients and predictions. Products are those of
	// inducing points; nil: gonum's, in Go.
	Device   learners.Device
	Products Products
}

// Sizes up to which solverAuto takes the more exact solver: the exact one takes
// one Cholesky factor a class and iteration; conjugate gradients keep two
// float32 matrices of instances by instances, 3.2 GB at the limit.
const (
	exactLimit = 1500
	cgLimit    = 20000
)

// solver is the solver for n instances.
func (s *Settings) solver(n int) string {
	switch {
	case s.Solver != solverAuto:
		return s.Solver
	case n <= exactLimit:
		return solverExact
	case n <= cgLimit:
		return solverCG
	}
	return solverInducing
}

// check reports settings that do not go together. That each is in its range is the
// business of the spec language.
func (s *Settings) check() error {
	if s.Subset > 0 && s.Confidences == confidencesPosterior {
		return fmt.Errorf("miplgp: subset must be 0 with confidences: posterior, which change at every instance, not %d", s.Subset)
	}
	return nil
}

// problem is what is learned from: instances and the candidate sets of their
// bags.
type problem struct {
	X          []float32 // [n, Dim] row-major
	Dim        int
	BagOf      []int   // [n] bag of each instance
	Candidates []uint8 // [bags, Classes], 1 for candidates
	Classes    int     // k, without the class of negatives
}

// problemOf lays the training bags out, their features normalised.
func problemOf(p *learners.Problem) *problem {
	set := p.Data
	in := &problem{Dim: set.Dim(), Classes: set.Classes}
	for b, bag := range p.Train {
		x := learners.Normalized(set.Bag(bag), p.Normalization)
		in.X = append(in.X, ndarray.Convert[float32](x)...)
		in.BagOf = append(in.BagOf, slices.Repeat([]int{b}, set.Size(bag))...)
		in.Candidates = append(in.Candidates, set.CandidateSet(bag)...)
	}
	return in
}

// n is the number of instances.
func (p *problem) n() int { return len(p.BagOf) }

// outputs is the number of Gaussian processes: the classes and the class of
// negatives, which comes last.
func (p *problem) outputs() int { return p.Classes + 1 }

// candidate reports whether instance i may belong to class c.
func (p *problem) candidate(i, c int) bool {
	return c == p.Classes || p.Candidates[p.BagOf[i]*p.Classes+c] != 0
}
