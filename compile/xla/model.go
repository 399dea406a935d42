package xla

import (
	"fmt"
	"maps"
	"slices"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/ndarray"
)

// Model has the graphs from which the programs over many steps are built. The weights of the loss
// terms are inputs, so that runs with different weights share one program.
type Model struct {
	*compile.Program
	Terms         []string // of the loss, in the order of the spec
	step, predict *graph.Graph
}

// NewModel builds the graphs of a program.
func NewModel(p *compile.Program) (*Model, error) {
	weighted, terms, err := compile.Weighted(p)
	if err != nil {
		return nil, err
	}
	m := &Model{Program: weighted, Terms: terms}
	if m.step, err = compile.Step(weighted); err == nil {
		m.predict, err = compile.Predict(weighted)
	}
	return m, err
}

// Text returns a description that is equal for models with equal programs.
func (m *Model) Text() string {
	return fmt.Sprint(m.step.Text(), m.predict.Text(), m.Terms, m.Masks, m.Normalize, m.Signature)
}

// Bytes estimates the memory that the programs of an epoch and of an evaluation need, for each job
// and shared by all jobs.
func (m *Model) Bytes(epoch, evaluation Layout) (job, shared float64) {
	inStep := max(m.step.Peak(epoch.N, epoch.Batch)+unfolded(m.step, epoch.N)+attended(m.step, epoch.N),
		m.predict.Peak(evaluation.N, evaluation.Batch)+unfolded(m.predict, evaluation.N)+attended(m.predict, evaluation.N))
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
