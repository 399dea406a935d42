// The graphs of trials that train together: weights of loss terms are inputs.

package compile

import (
	"fmt"
	"strings"

	"github.com/miplc/miplc/compile/graph"
)

// TermWeightPrefix begins the names of the inputs that ForGroup adds, one scalar per loss
// term: the weight of the term in the loss (paper Eq. 8).
const TermWeightPrefix = "loss_weight."

// GroupGraphs has the graphs that trials of one program share. The weights of the loss terms are inputs, so that
// trials may differ in them.
type GroupGraphs struct {
	*Program
	Terms                   []string // of the loss, in the order of the spec
	StepGraph, PredictGraph *graph.Graph
}

// ForGroup returns the graphs that trials of a program share.
func ForGroup(p *Program) (*GroupGraphs, error) {
	q, terms, err := withTermWeights(p)
	if err != nil {
		return nil, err
	}
	s := &GroupGraphs{Program: q, Terms: terms}
	if s.StepGraph, err = Step(q); err == nil {
		s.PredictGraph, err = Predict(q)
	}
	return s, err
}

// withTermWeights returns a program whose training graph has the weights of the loss terms as inputs, and
// the names of the terms.
func withTermWeights(p *Program) (_ *Program, terms []string, err error) {
	b := graph.NewBuilder(p.Train.Name)
	copied := b.Copy(p.Train, nil)
	var total *graph.Node
	for _, o := range p.Train.Outputs {
		if o.Name == OutLoss {
			continue
		}
		b.Output(o.Name, copied[o.Node.ID])
		name, isTerm := strings.CutPrefix(o.Name, TermPrefix)
		if !isTerm {
			continue
		}
		terms = append(terms, name)
		part := b.Mul(b.Input(TermWeightPrefix+name, graph.Float, graph.Shape{}), copied[o.Node.ID])
		if total == nil {
			total = part
		} else {
			total = b.Add(total, part)
		}
	}
	if total == nil {
		return nil, nil, fmt.Errorf("the training graph %s has no loss terms to weigh", p.Train.Name)
	}
	b.Output(OutLoss, total)
	q := *p
	if q.Train, err = b.Graph(); err == nil {
		q.Train, err = graph.Optimize(q.Train)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("bug: weighing the loss terms: %w", err)
	}
	return &q, terms, nil
}
