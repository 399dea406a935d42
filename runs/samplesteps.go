// Sample steps: the inputs and losses of the first steps of a training, with which another program can check its own.

package runs

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/fileio"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/internal/onnxruntime"
	"github.com/miplc/miplc/train"
	"github.com/miplc/miplc/train/gorgonia"
)

// Names of the files for sample steps.
const (
	sampleFile       = "sample_steps.json"
	sampleValuesFile = "sample_steps.bin"
)

// sampleSteps are the first steps of a training run: the inputs of the training step, without
// parameters and velocity, and the resulting losses.
type sampleSteps struct {
	File   string       `json:"file"`   // of the values
	Engine string       `json:"engine"` // engine that computed the losses
	Data   string       `json:"data"`   // name of the dataset
	Seed   uint64       `json:"seed"`
	Steps  []sampleStep `json:"steps"`
}

// sampleStep is one step. The losses and their terms have a value per run. They are those before the
// update.
type sampleStep struct {
	Bags   int                     `json:"bags"` // of each run
	Inputs map[string]sampleTensor `json:"inputs"`
	Losses []float64               `json:"losses"`
	Terms  map[string][]float64    `json:"terms"`
}

// sampleTensor is an input in the file of values: row-major, little-endian, aligned for any element
// type.
type sampleTensor struct {
	Type   string `json:"type"` // float32 or int64
	Shape  []int  `json:"shape"`
	Offset int    `json:"offset"` // bytes
}

// alignment is that of the tensors in the file: the size of the largest element.
const alignment = 8

// writeSampleSteps lays out the first steps of the runs and trains on them with engine gorgonia.
func writeSampleSteps(ctx context.Context, o *BuildTask, f *stepForm) (s *sampleSteps, err error) {
	sampled := f.trials
	if sampled == nil {
		if sampled, err = trials(ctx, o); err != nil {
			return nil, err
		}
	}
	engine, err := gorgonia.New(f.program)
	if err != nil {
		return nil, err
	}
	defer engine.Close()
	s = &sampleSteps{File: sampleValuesFile, Engine: "gorgonia", Data: sampled[0].Data.Name,
		Seed: uint64(o.Spec.Train.Seed.V)}
	batches := make([][]*train.Batch, o.SampleSteps)
	s.Steps = make([]sampleStep, o.SampleSteps)
	for _, trial := range sampled {
		state, list, err := train.FirstSteps(trial, o.SampleSteps)
		if err == nil && f.runs != nil && list[len(list)-1].Bags < f.runs.Bags {
			err = fmt.Errorf("%d steps requested, the last of them has fewer bags than the others", len(list))
		}
		if err != nil {
			return nil, o.Spec.AddSource(diag.Errorf(o.Spec.Data.Set.Pos, "sample steps: %v", err))
		}
		if err := engine.SetState(state); err != nil {
			return nil, err
		}
		for i, b := range list {
			batches[i] = append(batches[i], b)
			if err := s.Steps[i].add(engine, b); err != nil {
				return nil, fmt.Errorf("sample step %d: %w", i+1, err)
			}
		}
	}
	var values []byte
	for i := range s.Steps {
		feed := f.batch(batches[i])
		s.Steps[i].Inputs = map[string]sampleTensor{}
		for _, v := range f.described.Inputs {
			if t, ok := feed[v.Name]; ok { // the state is not part of a batch
				s.Steps[i].Inputs[v.Name] = sampleTensor{v.Type, t.Shape, len(values)}
				values = appendTensor(values, t)
			}
		}
	}
	if err := fileio.Replace(filepath.Join(o.Dir, sampleValuesFile), values); err != nil {
		return nil, err
	}
	return s, fileio.ReplaceJSON(filepath.Join(o.Dir, sampleFile), s)
}

// add trains a run on a batch and adds its losses.
func (s *sampleStep) add(engine train.Engine, b *train.Batch) error {
	r, err := engine.Step(b)
	if err != nil {
		return err
	}
	if s.Terms == nil {
		s.Terms = map[string][]float64{}
	}
	s.Bags, s.Losses = b.Bags, append(s.Losses, r.Loss)
	for name, v := range r.Terms {
		s.Terms[name] = append(s.Terms[name], v)
	}
	return nil
}

func appendTensor(to []byte, t onnxruntime.Tensor) []byte {
	to = ndarray.AppendBytes(ndarray.AppendBytes(to, t.Floats), t.Ints) // one of them is nil
	for len(to)%alignment != 0 {
		to = append(to, 0)
	}
	return to
}
