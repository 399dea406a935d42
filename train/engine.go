// Package train trains the parameters of a program on bags. It has the interface of engines, the
// training loop, label weights, checkpoints and metrics.
package train

import (
	"fmt"
	"slices"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/internal/ndarray"
)

// Batch is the input of one step.
type Batch struct {
	Instances    []float32            // [N, ...] row-major, normalised
	BagOf        []int                // [N] bag of each instance, 0 to B-1, ascending
	Bags         int                  // B
	Candidates   []float32            // [B, k]
	LabelWeights []float32            // [B, k] label weights after the previous epoch
	Masks        map[string][]float32 // dropout masks: 0 drops an element, compile.Mask.Scale keeps it
	Lambda       float64              // momentum of the label weights
	Epoch        int                  // t of the schedules, see Run.ScheduleEpoch
	Epochs       int                  // T
	LR           float64
	Position     compile.Position
	// ClassWeights are the factors [k] of train.class_weights; nil without it.
	ClassWeights []float32
}

// StepResult is the output of one step, computed before the update of the parameters. The slices
// are valid until the next step.
type StepResult struct {
	Loss          float64
	Terms         []float64 // unweighted, in the order of compile.Program.Terms
	Probabilities []float32 // [B, k]
	Attention     []float32 // [N]
	LabelWeights  []float32 // [B, k] new label weights
}

// Engine runs training steps of one program.
type Engine interface {
	// Step runs forward, backward and the update of the parameters.
	Step(b *Batch) (*StepResult, error)
	// Predict runs the inference graph on raw instances [N, ...] of whole bags, with bag_of [N] ascending from 0. It
	// returns probabilities [B, k] and attention scores [N], which are valid until the next call of the engine.
	Predict(instances []float32, bagOf []int, bags int) (probabilities, attention []float32, err error)
	// State returns a copy of the state; SetState copies its argument.
	State() (*State, error)
	SetState(*State) error
	Close() error
}

// NormalizedPredictor is an Engine that also predicts normalised instances, with the same bits as Predict from raw
// ones. The training loop normalises bags in memory once, and not in each evaluation.
type NormalizedPredictor interface {
	Engine
	PredictNormalized(instances []float32, bagOf []int, bags int) (probabilities, attention []float32, err error)
}

// State is the state of an engine that checkpoints contain.
type State struct {
	// Params are the learned parameters by name, row-major, and the statistics
	// compile.ParamMean and compile.ParamStd if the program normalises.
	Params map[string][]float32
	// Optimizer has the vectors [P] of the optimiser by name, see
	// compile.Program.OptimizerState. Missing ones are zero.
	Optimizer map[string][]float32
}

// NewState returns a state with copies of the vectors of a step graph by name, see
// compile.Program.StateVectors, and of the statistics of the normalisation by name.
func NewState(p *compile.Program, vectors, statistics map[string][]float32) *State {
	s := &State{Params: p.Unflatten(vectors[compile.InParams]), Optimizer: map[string][]float32{}}
	for _, name := range p.OptimizerState() {
		s.Optimizer[name] = slices.Clone(vectors[name])
	}
	for name, v := range statistics {
		s.Params[name] = slices.Clone(v)
	}
	return s
}

// Flat checks a state and returns copies of its values in the form of engines: the vectors of
// the step graph by name, with parameters in the order of the program, and the statistics of the
// normalisation by name.
func (s *State) Flat(p *compile.Program) (vectors, statistics map[string][]float32, err error) {
	if err = CheckState(p, s); err != nil {
		return nil, nil, err
	}
	vectors, statistics = map[string][]float32{}, map[string][]float32{}
	if vectors[compile.InParams], err = p.Flatten(s.Params); err != nil {
		return nil, nil, err
	}
	for _, name := range p.OptimizerState() {
		if vectors[name] = slices.Clone(s.Optimizer[name]); vectors[name] == nil {
			vectors[name] = make([]float32, p.FlatSize())
		}
	}
	for _, name := range p.NormalizationParams() {
		statistics[name] = slices.Clone(s.Params[name])
	}
	return vectors, statistics, nil
}

// CheckState returns an error for the first parameter of the program that is missing in a state
// or has another size.
func CheckState(p *compile.Program, s *State) error {
	check := func(name string, want int) error {
		if v, ok := s.Params[name]; !ok || len(v) != want {
			return fmt.Errorf("the state has %d values of parameter %s, the program needs %d", len(v), name, want)
		}
		return nil
	}
	for _, param := range p.Params {
		if err := check(param.Name, ndarray.Size(param.Shape)); err != nil {
			return err
		}
	}
	for _, name := range p.OptimizerState() {
		if v, ok := s.Optimizer[name]; ok && len(v) != p.FlatSize() {
			return fmt.Errorf("the state has %d values of the vector %s of the optimizer, the program needs %d", len(v), name,
				p.FlatSize())
		}
	}
	for _, name := range p.NormalizationParams() {
		if err := check(name, ndarray.Size(p.Signature.Instance)); err != nil {
			return err
		}
	}
	return nil
}
