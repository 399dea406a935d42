// Package train trains the parameters of a program on bags. It has the interface of engines, the
// training loop, label weights, checkpoints and metrics.
package train

import "github.com/miplc/miplc/compile"

// Batch is the input of one step.
type Batch struct {
	Instances    []float32          // [N, ...] row-major, normalised
	BagOf        []int              // [N] bag of each instance, 0 to B-1, ascending
	Bags         int                // B
	Candidates   []float32          // [B, k]
	LabelWeights []float32          // [B, k] label weights after the previous epoch
	Masks        map[string][]uint8 // dropout masks: 1 keeps an element, 0 drops it
	Lambda       float64            // momentum of the label weights
	Epoch        int                // t of the schedules, see Run.ScheduleEpoch
	Epochs       int                // T
	LR           float64
	Position     compile.Position
	// ClassWeights are the factors [k] of train.class_weights; nil without it.
	ClassWeights []float32
}

// StepResult is the output of one step, computed before the update of the parameters. The slices
// are valid until the next step.
type StepResult struct {
	Loss          float64
	Terms         map[string]float64 // unweighted, by name without the prefix
	Probabilities []float32          // [B, k]
	Attention     []float32          // [N]
	LabelWeights  []float32          // [B, k] new label weights
}

// Engine runs training steps of one program.
type Engine interface {
	// Step runs forward, backward and the update of the parameters.
	Step(b *Batch) (*StepResult, error)
	// Predict runs the inference graph on raw instances [N, ...] of whole bags, with bag_of [N] ascending from 0. It
	// returns new slices: probabilities [B, k] and attention scores [N].
	Predict(instances []float32, bagOf []int, bags int) (probabilities, attention []float32, err error)
	// State returns a copy of the state; SetState copies its argument.
	State() (*State, error)
	SetState(*State) error
	Close() error
}
