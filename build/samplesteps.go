package build

import (
	"fmt"
	"maps"
	"path/filepath"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/export/contract"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/internal/outfile"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/prepare"
	"github.com/miplc/miplc/runtime/ortenv"
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

// writeSampleSteps lays out the first steps of a run and trains on them with engine gorgonia.
func writeSampleSteps(o *Options, p *compile.Program, described *contract.Step) (*sampleSteps, error) {
	sampled, err := prepare.Trials([]*language.Spec{o.Spec}, o.Data)
	if err != nil {
		return nil, err
	}
	set := sampled[0].Data
	state, batches, err := train.Sample(sampled[0], o.SampleSteps)
	if err != nil {
		return nil, o.Spec.Show(diag.Errorf(o.Spec.Data.Set.Pos, "sample steps: %v", err))
	}
	engine, err := gorgonia.New(p, nil)
	if err != nil {
		return nil, err
	}
	defer engine.Close()
	if err := engine.SetState(state); err != nil {
		return nil, err
	}
	s := &sampleSteps{File: sampleValuesFile, Engine: engine.Name(), Data: set.Name, Seed: uint64(o.Spec.Train.Seed.V)}
	var values []byte
	for i, b := range batches {
		step := sampleStep{Bags: b.Bags, Inputs: map[string]sampleTensor{}, Terms: map[string]float64{}}
		feed, err := batchFeed(p, b)
		if err != nil {
			return nil, err
		}
		for _, v := range described.Inputs {
			if t, ok := feed[v.Name]; ok { // parameters and velocity are not part of a batch
				step.Inputs[v.Name] = sampleTensor{v.Type, t.Shape, len(values)}
				values = appendTensor(values, t)
			}
		}
		r, err := engine.Step(b)
		if err != nil {
			return nil, fmt.Errorf("sample step %d: %w", i+1, err)
		}
		step.Loss = r.Loss
		maps.Copy(step.Terms, r.Terms)
		s.Steps = append(s.Steps, step)
	}
	if err := outfile.Replace(filepath.Join(o.Dir, sampleValuesFile), values); err != nil {
		return nil, err
	}
	return s, outfile.ReplaceJSON(filepath.Join(o.Dir, sampleFile), s)
}

func appendTensor(to []byte, t ortenv.Tensor) []byte {
	to = ndarray.AppendBytes(ndarray.AppendBytes(to, t.Floats), t.Ints) // one of them is nil
	for len(to)%alignment != 0 {
		to = append(to, 0)
	}
	return to
}
