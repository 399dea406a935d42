// The description of a training step in its file.

package contract

import "github.com/miplc/miplc/internal/onnxpb"

// contractStep is the value of KeyContract in the file of a training step.
const contractStep = "train_step/1"

// KeyStep is the metadata key of the description of a training step, JSON of Step.
const KeyStep = "miplc.train_step"

// Step describes a file that computes one training step: its inputs and outputs, and the
// position of each parameter in the flat vectors.
type Step struct {
	Version    string `json:"-"` // of miplc that wrote the file: KeyVersion
	SpecSHA256 string `json:"-"` // KeySpecHash
	Seed       uint64 `json:"-"` // of the initial parameters: KeySeed

	Params []StepParam `json:"params"` // layout of the vectors of State and their new values
	Size   int         `json:"size"`   // elements of such a vector
	// inputs of Size elements that the outputs new_NAME replace: params, and vectors that start as zeros
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
	Name    string `json:"name"`
	Type    string `json:"type"` // float32 or int64
	Shape   []any  `json:"shape"`
	Meaning string `json:"meaning"`
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

// Put writes the description to a model.
func (s *Step) Put(model *onnxpb.ModelProto) error {
	model.SetMetadata(KeyContract, contractStep)
	return putEntries(model, []entry{{KeyVersion, &s.Version, false}, {KeySpecHash, &s.SpecSHA256, false},
		{KeySeed, &s.Seed, false}, {KeyStep, s, false}})
}
