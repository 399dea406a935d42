package xla

import (
	"fmt"
	"strings"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/ndarray"
)

// InTermWeight begins the names of the inputs that NewModel adds, one scalar
// per loss term: the weight of the term in the loss (paper Eq. 8).
const InTermWeight = "loss_weight."

// Model is what the programs over many steps are made of. The weights of the
// loss terms are inputs, so that runs of different weights share one program.
type Model struct {
	*compile.Program
	Terms         []string // of the loss, in the order of the spec
	step, predict *graph.Graph
}

// NewModel builds the graphs of a program.
func NewModel(p *compile.Program) (*Model, error) {
	weighted, terms, err := weigh(p)
	if err != nil {
		return nil, err
	}
	m := &Model{Program: weighted, Terms: terms}
	if m.step, err = compile.Step(weighted); err == nil {
		m.predict, err = compile.Predict(weighted)
	}
	return m, err
}

// Text is equal for models that have the same programs.
func (m *Model) Text() string {
	return fmt.Sprint(m.step.Text(), m.predict.Text(), m.Terms, m.Masks, m.Normalize, m.Signature)
}

// Bytes estimates the memory that the programs of an epoch and of an evaluation
// take: what each job does, and what all share.
func (m *Model) Bytes(epoch, evaluation Layout) (job, shared float64) {
	inStep := max(m.step.Peak(epoch.N, epoch.Batch)+unfolded(m.step, epoch.N),
		m.predict.Peak(evaluation.N, evaluation.Batch)+unfolded(m.predict, evaluation.N))
	traces := epoch.Steps*m.EpochWidth(epoch) + evaluation.Steps*m.ForwardWidth(evaluation)
	perBag := 2 * epoch.Bags * m.Signature.Classes // candidates and label weights
	job = 4*(inStep+float64(traces+perBag)) + float64(epoch.Steps*m.MaskBytes(epoch))
	return job, 4 * float64(epoch.Rows*ndarray.Size(m.Signature.Instance))
}

// MaskBytes are those of the dropout masks of a job and step.
func (m *Model) MaskBytes(l Layout) (n int) {
	for _, mask := range m.Masks {
		n += ndarray.Size(mask.Shape.Concrete(l.N, l.Batch))
	}
	return n
}

// weigh gives a program the weights of its loss terms as inputs of the training
// graph. terms names them in the order of the spec.
func weigh(p *compile.Program) (weighted *compile.Program, terms []string, err error) {
	b := graph.NewBuilder(p.Train.Name)
	copied := b.Copy(p.Train, nil)
	var total *graph.Node
	for _, o := range p.Train.Outputs {
		if o.Name == compile.OutLoss {
			continue
		}
		b.Output(o.Name, copied[o.Node.ID])
		name, isTerm := strings.CutPrefix(o.Name, compile.TermPrefix)
		if !isTerm {
			continue
		}
		terms = append(terms, name)
		part := b.Mul(b.Input(InTermWeight+name, graph.Float, graph.Shape{}), copied[o.Node.ID])
		if total == nil {
			total = part
		} else {
			total = b.Add(total, part)
		}
	}
	if total == nil {
		return nil, nil, fmt.Errorf("the training graph %s has no loss terms to weigh", p.Train.Name)
	}
	b.Output(compile.OutLoss, total)
	q := *p
	if q.Train, err = b.Graph(); err == nil {
		q.Train, err = graph.Optimize(q.Train)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("bug: weighing the loss terms: %w", err)
	}
	return &q, terms, nil
}
