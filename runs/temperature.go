// The temperature that calibrates the probabilities of an exported model, fitted to bags of the trial.

package runs

import (
	"context"
	"errors"
	"math"
	"slices"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/data/measure"
)

// Temperature describes the temperature of an exported model.
type Temperature struct {
	Value float64 `json:"value"` // divides the logits
	// FittedTo is the number of validation bags to which it was fitted: those with a known label, else those with a
	// candidate set that excludes a class. 0: the spec gives the value.
	FittedTo int `json:"fitted_to,omitempty"`
	// Candidates reports whether it was fitted to candidate sets.
	Candidates bool `json:"candidates,omitempty"`
	// Before has the log loss and the ECE of the model without temperature, by part of the split.
	// train.Measures has those of the exported model.
	Before map[string]measure.Values `json:"before"`
}

// setTemperature sets the temperature that the spec asks for, if any.
func (m *trainedModel) setTemperature(ctx context.Context) error {
	asked := m.trial.Program.Spec.Export.Temperature.V
	if !asked.Validation && asked.T == 0 {
		return nil
	}
	content, err := m.singleBagFile()
	if err != nil {
		return err
	}
	parts := []data.Part{{Name: data.ValidationPart, Bags: m.trial.Split.Validation}, {Name: data.TestPart,
		Bags: m.trial.Split.Test}}
	found, _, err := m.predictParts(ctx, parts, content)
	if err != nil {
		return err
	}
	t := &Temperature{Value: asked.T, Before: map[string]measure.Values{}}
	for _, part := range parts {
		if len(part.Bags) == 0 {
			continue
		}
		var p measure.Predictions
		for i, bag := range part.Bags {
			p.Add(found[part.Name][i], m.trial.Data.TrueMask(bag), m.trial.Data.CandidateMask(bag))
			p.AddGroup(m.trial.Data.GroupOf(bag))
		}
		values := p.Values()
		t.Before[part.Name] = measure.Values{}
		for _, name := range []string{measure.LogLoss, measure.ECE} {
			if v := values.Get(name); v != nil {
				t.Before[part.Name][name] = *v
			}
		}
		if asked.Validation && part.Name == data.ValidationPart {
			t.Value, _ = p.Temperature()
			if t.FittedTo = p.KnownBags(); t.FittedTo == 0 {
				t.Value, t.FittedTo = p.CandidateTemperature()
				t.Candidates = true
			}
		}
	}
	if t.Value == 0 {
		return errors.New("the probabilities of the validation bags are not finite: no temperature can be fitted")
	}
	m.Temperature, m.metadata.Temperature = t, &t.Value
	m.Program, err = m.Program.WithTemperature(t.Value)
	return err
}

// applyTo returns probabilities with the temperature; nil is 1.
func (t *Temperature) applyTo(probabilities []float32) []float32 {
	if t == nil {
		return probabilities
	}
	// The powers of the probabilities divided by the largest one: without the division, all may underflow to 0.
	largest, sum := float64(slices.Max(probabilities)), 0.0
	power := func(v float32) float64 { return math.Pow(float64(v)/largest, 1/t.Value) }
	for _, v := range probabilities {
		sum += power(v)
	}
	out := make([]float32, len(probabilities))
	for c, v := range probabilities {
		out[c] = float32(power(v) / sum)
	}
	return out
}
