// Sample steps: the inputs and losses of the first steps of a training, with which another program can check its own.

package build

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/fileio"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/internal/onnxruntime"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/runs/prepare"
	"github.com/miplc/miplc/train"
	"github.com/miplc/miplc/train/engines"
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

// sampleStep is one step. The loss and its terms are those before the update.
type sampleStep struct {
	Bags   int                     `json:"bags"`
	Inputs map[string]sampleTensor `json:"inputs"`
	Loss   float64                 `json:"loss"`
	Terms  map[string]float64      `json:"terms"`
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

// writeSampleSteps trains the first steps of a run with engine gorgonia, and writes their inputs and losses.
func writeSampleSteps(ctx context.Context, o *Task, f *trainStep) (*sampleSteps, error) {
	list, err := prepare.Trials([]*language.Spec{o.Spec}, o.Data, prepare.EncodeWith(ctx, nil))
	if err != nil {
		return nil, err
	}
	engine, err := engines.NewGorgonia(f.program)
	if err != nil {
		return nil, err
	}
	defer engine.Close()
	s := &sampleSteps{File: sampleValuesFile, Engine: "gorgonia", Data: list[0].Data.Name,
		Seed: uint64(o.Spec.Train.Seed.V)}
	state, batches, err := train.FirstSteps(list[0], o.SampleSteps)
	if err != nil {
		return nil, o.Spec.AddSource(diag.Errorf(o.Spec.Data.Set.Pos, "sample steps: %v", err))
	}
	if err := engine.SetState(state); err != nil {
		return nil, err
	}
	var values []byte
	for i, b := range batches {
		r, err := engine.Step(b)
		if err != nil {
			return nil, fmt.Errorf("sample step %d: %w", i+1, err)
		}
		step := sampleStep{Bags: b.Bags, Inputs: map[string]sampleTensor{}, Loss: r.Loss, Terms: map[string]float64{}}
		for t, name := range f.program.Terms {
			step.Terms[name] = r.Terms[t]
		}
		feed := f.batch(b)
		for _, v := range f.described.Inputs {
			if t, ok := feed[v.Name]; ok { // the state is not part of a batch
				step.Inputs[v.Name] = sampleTensor{v.Type, t.Shape, len(values)}
				values = appendTensor(values, t)
			}
		}
		s.Steps = append(s.Steps, step)
	}
	if err := fileio.Replace(filepath.Join(o.Dir, sampleValuesFile), values); err != nil {
		return nil, err
	}
	return s, fileio.ReplaceJSON(filepath.Join(o.Dir, sampleFile), s)
}

func appendTensor(to []byte, t onnxruntime.Tensor) []byte {
	to = ndarray.AppendBytes(ndarray.AppendBytes(to, t.Floats), t.Ints) // one of them is nil
	for len(to)%alignment != 0 {
		to = append(to, 0)
	}
	return to
}
