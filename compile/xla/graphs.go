// The graphs of a program for XLA, and the memory that they need.

package xla

import (
	"fmt"
	"maps"
	"slices"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/internal/ndarray"
)

// Graphs contains the graphs from which the programs over many steps are built.
type Graphs struct{ *compile.GroupGraphs }

// NewGraphs builds the graphs of a program.
func NewGraphs(p *compile.Program) (*Graphs, error) {
	s, err := compile.ForGroup(p)
	return &Graphs{s}, err
}

// Text returns a description that is equal for graphs with equal programs.
func (g *Graphs) Text() string {
	return fmt.Sprint(g.StepGraph.Text(), g.PredictGraph.Text(), g.Terms, g.Masks, g.Normalize, g.Signature)
}

// Bytes estimates the memory that the programs of an epoch and of an evaluation need, for each job
// and shared by all jobs.
func (g *Graphs) Bytes(epoch, evaluation Layout) (job, shared float64) {
	inStep := max(g.StepGraph.Peak(epoch.N, epoch.Batch)+unfolded(g.StepGraph, epoch.N)+attended(g.StepGraph, epoch.N),
		g.PredictGraph.Peak(evaluation.N, evaluation.Batch)+unfolded(g.PredictGraph, evaluation.N)+attended(g.PredictGraph,
			evaluation.N))
	traces := epoch.Steps*g.EpochWidth(epoch) + evaluation.Steps*g.ForwardWidth(evaluation)
	perBag := 2 * epoch.Bags * g.Signature.Classes // candidates and label weights
	job = 4*(inStep+float64(traces+perBag)) + float64(epoch.Steps*g.MaskBytes(epoch))
	return job, 4 * float64(epoch.Rows*ndarray.Size(g.Signature.Instance))
}

// MaskBytes returns the size of the dropout masks of one job and step.
func (g *Graphs) MaskBytes(l Layout) (n int) {
	for _, mask := range g.Masks {
		n += ndarray.Size(mask.Shape.Concrete(l.N, l.Batch))
	}
	return n
}

// StepScalarNames returns the names of the inputs of a step that change from step to step, see
// compile.Program.StepScalars.
func (g *Graphs) StepScalarNames() []string {
	return slices.Sorted(maps.Keys(g.StepScalars(compile.Position{})))
}
