// Package miplgp implements MIPLGP, the Gaussian process for multi-instance partial-label learning
// (Tang, Zhang, Zhang: "Multi-instance partial-label learning: towards exploiting dual inexact
// supervision"), with which the DEMIPL paper compares.
//
// Every instance of a bag gets the candidate set of the bag and one more class, the class of
// negative instances. Its confidences over that set become Dirichlet parameters, which become the
// targets and noise variances of one Gaussian process per class. Settings.Confidences defines how
// they are updated. The class of a bag is that of its most confident instance, without the class of
// negatives.
package miplgp

import (
	"slices"

	"github.com/miplc/miplc/compile/native"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/train"
)

// Names of the solvers of the linear systems.
const (
	solverAuto     = "auto"     // by the number of instances, see Settings.solver
	solverExact    = "exact"    // Cholesky in float64
	solverCG       = "cg"       // preconditioned conjugate gradients, float32 kernel
	solverInducing = "inducing" // variational inducing points
)

// The sources of the confidences of an iteration.
const (
	// confidencesPrior does what the authors' program does: the confidences follow the constant
	// prior means. They change the targets with which the hyper-parameters are learned. The noise,
	// and the targets that predictions use, stay those of uniform confidences.
	confidencesPrior = "prior"
	// confidencesPosterior follows the posterior mean at each instance. Targets and noise are
	// updated, and predictions use the last ones. The class of negatives, a candidate of every
	// instance, tends to win all instances.
	confidencesPosterior = "posterior"
)

// Settings are the settings of a fit. The zero value is not usable; defaults and ranges are in the
// tables of the spec language.
type Settings struct {
	Iterations  int     // steps of Adam
	LR          float64 // of the first step; decreases to 0 along a cosine
	Epsilon     float64 // added to the confidence in a Dirichlet parameter
	Samples     int     // draws of the posterior for a sampled prediction
	Solver      string  // "auto", "exact", "cg" or "inducing"
	Inducing    int     // number of inducing points; with cg: of points for the variance
	Probes      int     // cg: random vectors of the trace estimates
	Rank        int     // cg: rank of the preconditioner
	Tolerance   float64 // cg: residual of a system relative to its right side
	Confidences string  // "prior" or "posterior"
	Subset      int     // instances, in whole bags, on which hyper-parameters are learned; 0: all, as with "posterior"
	Lengthscale float64 // initial value, in units of the instances; 0: median distance between instances
	Seed        uint64
	Kernels     native.Options // of conjugate gradients and predictions
}

// The largest numbers of instances for which solverAuto chooses the more exact solver. The exact
// one needs one Cholesky factor per class and iteration. Conjugate gradients keep two float32
// matrices of instances by instances, 3.2 GB at the limit.
const (
	exactLimit = 1500
	cgLimit    = 20000
)

// solver returns the solver for n instances.
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

// problem is the training data: instances and the candidate sets of their bags.
type problem struct {
	X          []float32 // [n, Dim] row-major
	Dim        int
	BagOf      []int   // [n] bag of each instance
	Candidates []uint8 // [bags, Classes], 1 for candidates
	Classes    int     // k, without the class of negatives
}

// problemOf lays out the training bags, with normalised features.
func problemOf(p *train.Problem) (*problem, error) {
	set := p.Data
	in := &problem{Dim: set.Dim(), Classes: set.Classes}
	for b, bag := range p.Train {
		raw, err := set.Bag(bag)
		if err != nil {
			return nil, err
		}
		x := train.Normalized(raw, p.Normalization)
		in.X = append(in.X, ndarray.Convert[float32](x)...)
		in.BagOf = append(in.BagOf, slices.Repeat([]int{b}, set.Size(bag))...)
		in.Candidates = append(in.Candidates, set.CandidateMask(bag)...)
	}
	return in, nil
}

// n returns the number of instances.
func (p *problem) n() int { return len(p.BagOf) }

// outputs returns the number of Gaussian processes: one per class, and the class of negatives,
// which is the last.
func (p *problem) outputs() int { return p.Classes + 1 }
