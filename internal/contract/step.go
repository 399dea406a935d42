// The contract of a training step as a file.

package contract

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/internal/onnxpb"
)

// contractStep is the value of KeyContract in the file of a training step.
const contractStep = "train_step/1"

// KeyStep is the metadata key of the description of a training step, JSON of
// Step.
const KeyStep = "miplc.train_step"

// Step describes a file that computes one training step: its inputs and outputs, and the
// position of each parameter in the flat vectors.
type Step struct {
	Version    string `json:"-"` // of miplc that wrote the file: KeyVersion
	SpecSHA256 string `json:"-"` // KeySpecHash
	Seed       uint64 `json:"-"` // of the initial parameters: KeySeed

	// Runs is the number of runs that the file trains at once, the first axis of all inputs and
	// outputs. Batches are padded. 0: one run, without that axis.
	Runs   int         `json:"runs,omitempty"`
	Params []StepParam `json:"params"` // layout of the vectors of State and their new values
	Size   int         `json:"size"`   // elements of such a vector
	// inputs of Size elements per run that the outputs new_NAME replace: params, and vectors that start as zeros
	State   []string    `json:"state"`
	Initial StepInitial `json:"initial"` // values to start from
	Inputs  []StepValue `json:"inputs"`
	Outputs []StepValue `json:"outputs"`
	// Training has the training settings of the spec. The settings of the optimizer are part of
	// the graph; the caller applies the others.
	Training StepTraining `json:"training"`
}

// StepParam is the position of a parameter in the flat vectors, row-major.
type StepParam struct {
	Name   string  `json:"name"`
	Shape  []int   `json:"shape"`
	Offset int     `json:"offset"` // of its first element
	Init   string  `json:"init"`   // uniform in +-scale, normal with deviation scale, or constant scale
	Scale  float64 `json:"scale"`
}

// StepInitial is the file of the initial parameters, in the folder of the model.
type StepInitial struct {
	File   string `json:"file"`   // float32, little-endian, in the layout of Params
	SHA256 string `json:"sha256"` // of the file
}

// StepValue is an input or output. Shape contains numbers, "N" (instances of the batch)
// and "B" (bags).
type StepValue struct {
	Name    string   `json:"name"`
	Type    string   `json:"type"` // float32 or int64
	Shape   []Extent `json:"shape"`
	Meaning string   `json:"meaning"`
}

// StepTraining is the train and weights sections of the spec.
type StepTraining struct {
	Epochs     int     `json:"epochs"` // T
	Batch      int     `json:"batch"`  // bags per step
	Optimizer  string  `json:"optimizer"`
	LR         float64 `json:"lr"` // of the first epoch
	LRSchedule string  `json:"lr_schedule"`
	Warmup     int     `json:"warmup"`          // epochs in which the rate rises
	Lambda     string  `json:"lambda_schedule"` // linear (T-t)/T, progressive 0, averaging 1
	FirstEpoch int     `json:"first_epoch"`     // number t of the first epoch
}

// Extent is one size of a shape: a symbol, or a number if Symbol is empty.
type Extent struct {
	Symbol string
	Number int
}

// MarshalJSON writes a string or a number.
func (e Extent) MarshalJSON() ([]byte, error) {
	if e.Symbol != "" {
		return json.Marshal(e.Symbol)
	}
	return json.Marshal(e.Number)
}

// UnmarshalJSON reads a string or a number.
func (e *Extent) UnmarshalJSON(text []byte) error {
	if len(text) > 0 && text[0] == '"' {
		return json.Unmarshal(text, &e.Symbol)
	}
	return json.Unmarshal(text, &e.Number)
}

func (e Extent) dim() int64 {
	if e.Symbol != "" {
		return onnxpb.Symbol
	}
	return int64(e.Number)
}

func (s *Step) entries() []entry {
	return []entry{{KeyVersion, &s.Version, false}, {KeySpecHash, &s.SpecSHA256, false}, {KeySeed, &s.Seed, false},
		{KeyStep, s, false}}
}

// Put writes the description to a model.
func (s *Step) Put(model *onnxpb.ModelProto) error {
	model.SetMetadata(KeyContract, contractStep)
	return putEntries(model, s.entries())
}

// CheckStep checks that a model is the training step that it describes: it has the
// described inputs and outputs, and the parameters fill the flat vectors without gaps.
func CheckStep(model *onnxpb.ModelProto) (*Step, error) {
	if c, _ := model.Metadata(KeyContract); c != contractStep {
		return nil, fmt.Errorf("%s is %q, expected %q: the file is not a training step of miplc", KeyContract, c,
			contractStep)
	}
	s := &Step{}
	if err := getEntries(model, s.entries()); err != nil {
		return nil, err
	}
	if err := s.checkLayout(); err != nil {
		return nil, fmt.Errorf("contract %s: %w", contractStep, err)
	}
	in, err := tensors(s.Inputs)
	if err != nil {
		return nil, err
	}
	out, err := tensors(s.Outputs)
	if err != nil {
		return nil, err
	}
	return s, checkFile(contractStep, model, 0, in, out)
}

// checkLayout checks that the parameters are adjacent, from 0 to Size.
func (s *Step) checkLayout() error {
	at := 0
	for _, p := range s.Params {
		n, ok := ndarray.SizeWithin(p.Shape, maxParams)
		if !ok || n == 0 {
			return fmt.Errorf("parameter %s has the shape %v", p.Name, p.Shape)
		}
		if p.Offset != at {
			return fmt.Errorf("parameter %s starts at %d of the flat vector, the one before ends at %d", p.Name, p.Offset, at)
		}
		at += n
	}
	if at != s.Size || at == 0 {
		return fmt.Errorf("the parameters fill %d of %d elements of the flat vector", at, s.Size)
	}
	return nil
}

func tensors(values []StepValue) ([]Tensor, error) {
	if len(values) == 0 {
		return nil, errors.New("the training step names no values")
	}
	list := make([]Tensor, len(values))
	for i, v := range values {
		if _, known := elementTypes[v.Type]; !known {
			return nil, fmt.Errorf("%s has the element type %q, expected float32 or int64", v.Name, v.Type)
		}
		list[i] = Tensor{Name: v.Name, Type: v.Type}
		for _, e := range v.Shape {
			list[i].Dims = append(list[i].Dims, e.dim())
		}
	}
	return list, nil
}
