package runs

import (
	"context"
	"errors"
	"math"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/export"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/onnxpb"
	"github.com/miplc/miplc/measure"
	"github.com/miplc/miplc/prepare"
	"github.com/miplc/miplc/train"
	"github.com/miplc/miplc/verify"
	"github.com/miplc/miplc/verify/parity"
)

// Temperature describes the temperature of an exported model.
type Temperature struct {
	Value float64 `json:"value"` // divides the logits
	// FittedTo is the number of validation bags with a known label to which it was fitted;
	// 0: the spec states it.
	FittedTo int `json:"fitted_to,omitempty"`
	// Before are the log loss and the ECE of the model without the temperature, by part of
	// the split; train.Measures has those of the exported model.
	Before map[string]measure.Values `json:"before"`
}

// model is a trained model on its way to a file.
type model struct {
	program     *compile.Program
	params      map[string][]float32
	meta        export.Metadata
	temperature *Temperature // nil: none
}

// modelOf returns the model of a trained trial, with its temperature if the spec asks for
// one.
func modelOf(ctx context.Context, t *train.Trial, report *train.Report, library, version string) (*model, error) {
	m := &model{program: report.Program, params: report.State.Params}
	var err error
	if m.meta, err = metadata(m.program, t, report.Engine, version); err != nil {
		return nil, err
	}
	if err := checkTemperature(t); err != nil {
		return nil, err
	}
	asked := t.Program.Spec.Export.Temperature.V
	if !asked.Validation && asked.T == 0 {
		return m, nil
	}
	if err := m.calibrate(ctx, t, library); err != nil {
		return nil, err
	}
	m.meta.Temperature = &m.temperature.Value
	m.program, err = m.program.WithTemperature(m.temperature.Value)
	return m, err
}

// calibrate sets the temperature that the spec asks for.
func (m *model) calibrate(ctx context.Context, t *train.Trial, library string) error {
	asked := t.Program.Spec.Export.Temperature
	m.temperature = &Temperature{Value: asked.V.T, Before: map[string]measure.Values{}}
	for _, part := range []data.Part{{Name: data.ValidationPart, Bags: t.Split.Validation}, {Name: data.TestPart, Bags: t.Split.Test}} {
		if len(part.Bags) == 0 {
			continue
		}
		found, err := m.predict(ctx, t, part.Bags, library)
		if err != nil {
			return err
		}
		values := found.Values()
		m.temperature.Before[part.Name] = measure.Values{}
		for _, name := range []string{measure.LogLoss, measure.ECE} {
			if v := values.Get(name); v != nil {
				m.temperature.Before[part.Name][name] = *v
			}
		}
		if asked.V.Validation && part.Name == data.ValidationPart {
			m.temperature.Value, _ = found.Temperature()
			m.temperature.FittedTo = found.Known()
		}
	}
	if m.temperature.Value == 0 {
		return errors.New("the probabilities of the validation bags are not finite: no temperature can be fitted")
	}
	return nil
}

// predict predicts bags with the file that the model has so far, each bag alone.
func (m *model) predict(ctx context.Context, t *train.Trial, bags []int, library string) (*measure.Predictions, error) {
	content, interpreter, err := m.alone()
	if err != nil {
		return nil, err
	}
	rows, err := verify.Predict(ctx, t, bags, content, library, interpreter)
	if err != nil {
		return nil, err
	}
	found := &measure.Predictions{}
	for i, bag := range bags {
		label, known := t.Data.Label(bag)
		if !known {
			label = -1
		}
		found.Add(rows[i], label, t.Data.CandidateSet(bag))
	}
	return found, nil
}

// alone returns the content of a file that predicts one bag at a time, whatever the
// signature of the spec, and the prediction of the interpreter.
func (m *model) alone() ([]byte, verify.PredictFunc, error) {
	spec := *m.program.Spec
	spec.Export.Signature.V = export.SignatureBag
	p := *m.program
	p.Spec = &spec
	pb, err := export.Model(&p, m.params, m.meta)
	if err != nil {
		return nil, nil, err
	}
	content, err := onnxpb.Marshal(pb)
	return content, verify.Interpreted(&p, m.params), err
}

// withTemperature returns an engine whose probabilities have a temperature.
func withTemperature(e parity.Engine, t *Temperature) parity.Engine {
	if t == nil {
		return e
	}
	predict := e.Predict
	e.Predict = func(x []float32, n int) ([]float32, []float32, error) {
		p, a, err := predict(x, n)
		sum := 0.0
		for _, v := range p {
			sum += math.Pow(float64(v), 1/t.Value)
		}
		out := make([]float32, len(p))
		for c, v := range p {
			out[c] = float32(math.Pow(float64(v), 1/t.Value) / sum)
		}
		return out, a, err
	}
	return e
}

// checkTemperature reports a temperature that cannot be fitted, before anything is trained.
func checkTemperature(t *train.Trial) error {
	asked := t.Program.Spec.Export.Temperature
	if !asked.V.Validation {
		return nil
	}
	text := ""
	switch {
	case len(t.Split.Validation) == 0:
		text = "export.temperature is fitted to validation bags, and the split has none"
	case !knows(t.Data, t.Split.Validation):
		text = "no true label of the validation bags is known: no temperature can be fitted"
	default:
		return nil
	}
	return &prepare.SpecError{Err: t.Program.Spec.Show(diag.Errorf(asked.Pos, "%s", text).
		WithNote("set data.split.validation, or export.temperature to a number"))}
}

// knows reports whether the true label of any of the bags is known.
func knows(set *data.Dataset, bags []int) bool {
	for _, bag := range bags {
		if _, known := set.Label(bag); known {
			return true
		}
	}
	return false
}
