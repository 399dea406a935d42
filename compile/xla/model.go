package xla

import (
	"fmt"
	"maps"
	"slices"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/internal/ndarray"
)

// Model has the graphs from which the programs over many steps are built.
type Model struct{ *compile.Shared }

// NewModel builds the graphs of a program.
func NewModel(p *compile.Program) (*Model, error) {
	s, err := compile.Share(p)
	return &Model{s}, err
}

// Text returns a description that is equal for models with equal programs.
func (m *Model) Text() string {
	return fmt.Sprint(m.StepGraph.Text(), m.PredictGraph.Text(), m.Terms, m.Masks, m.Normalize, m.Signature)
}

// Bytes estimates the memory that the programs of an epoch and of an evaluation need, for each job
// and shared by all jobs.
func (m *Model) Bytes(epoch, evaluation Layout) (job, shared float64) {
	inStep := max(m.StepGraph.Peak(epoch.N, epoch.Batch)+unfolded(m.StepGraph, epoch.N)+attended(m.StepGraph, epoch.N),
		m.PredictGraph.Peak(evaluation.N, evaluation.Batch)+unfolded(m.PredictGraph, evaluation.N)+attended(m.PredictGraph, evaluation.N))
	traces := epoch.Steps*m.EpochWidth(epoch) + evaluation.Steps*m.ForwardWidth(evaluation)
	perBag := 2 * epoch.Bags * m.Signature.Classes // candidates and label weights
	job = 4*(inStep+float64(traces+perBag)) + float64(epoch.Steps*m.MaskBytes(epoch))
	return job, 4 * float64(epoch.Rows*ndarray.Size(m.Signature.Instance))
}

// MaskBytes returns the size of the dropout masks of one job and step.
func (m *Model) MaskBytes(l Layout) (n int) {
	for _, mask := range m.Masks {
		n += ndarray.Size(mask.Shape.Concrete(l.N, l.Batch))
	}
	return n
}

// StepScalarNames returns the names of the inputs of a step that change from step to step, see
// compile.Program.StepScalars.
func (m *Model) StepScalarNames() []string {
	return slices.Sorted(maps.Keys(m.StepScalars(compile.Position{})))
}
