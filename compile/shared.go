package compile

import (
	"fmt"
	"strings"

	"github.com/miplc/miplc/graph"
)

// InTermWeight begins the names of the inputs that Share adds, one scalar per loss
// term: the weight of the term in the loss (paper Eq. 8).
const InTermWeight = "loss_weight."

// Shared has the graphs of many runs. The weights of the loss terms are inputs, so that runs with
// different weights share them.
type Shared struct {
	*Program
	Terms                   []string // of the loss, in the order of the spec
	StepGraph, PredictGraph *graph.Graph
}

// Share returns the graphs of runs of a program.
func Share(p *Program) (*Shared, error) {
	q, terms, err := weighted(p)
	if err != nil {
		return nil, err
	}
	s := &Shared{Program: q, Terms: terms}
	if s.StepGraph, err = Step(q); err == nil {
		s.PredictGraph, err = Predict(q)
	}
	return s, err
}

// weighted returns a program whose training graph has the weights of the loss terms as inputs, and
// the names of the terms.
func weighted(p *Program) (_ *Program, terms []string, err error) {
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
