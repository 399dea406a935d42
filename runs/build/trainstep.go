// The training step as an ONNX file for training without miplc, written only if it agrees with the interpreter.

package build

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/data/bagfile"
	"github.com/miplc/miplc/export"
	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/contract"
	"github.com/miplc/miplc/internal/fileio"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/internal/onnxruntime"
	"github.com/miplc/miplc/internal/resources"
	"github.com/miplc/miplc/runs"
	"github.com/miplc/miplc/runs/prepare"
	"github.com/miplc/miplc/train"
)

// Names of the files for training without miplc.
const (
	TrainStepFile = "train_step.onnx"
	InitialFile   = "initial_parameters.bin" // float32, little-endian, in the layout that TrainStepFile describes
)

// stepTolerance is the allowed difference of one step in onnxruntime from the float64 interpreter:
// absolute, and relative for values above 1.
const stepTolerance = 1e-5

// StepCheck is the difference of the training step from the interpreter.
type StepCheck struct {
	MaxAbsDiff float64 `json:"max_abs_diff"`
	Tolerance  float64 `json:"tolerance"`
	Instances  int     `json:"instances"` // of the batch
	Bags       int     `json:"bags"`
}

// trainStep is the training step of a program with its initial state.
type trainStep struct {
	program   *compile.Program
	step      *graph.Graph
	state     *train.State
	initial   []float32      // parameters of state as a flat vector
	described *contract.Step // set by write
}

// newTrainStep returns the step of a program with the parameters from which a run starts.
func newTrainStep(p *compile.Program, folder bagfile.Folder) (*trainStep, error) {
	step, err := compile.StepOfSpec(p)
	if err != nil {
		return nil, err
	}
	given, err := prepare.InitialParameters(p, nil, folder)
	if err != nil {
		return nil, err
	}
	state := train.UntrainedState(p, uint64(p.Spec.Train.Seed.V))
	maps.Copy(state.Params, given)
	initial, err := p.Flatten(state.Params)
	return &trainStep{program: p, step: step, state: state, initial: initial}, err
}

// write writes the training step to a temporary file and compares one step in onnxruntime with the
// interpreter. The caller must commit or discard the file.
func (f *trainStep) write(dir string, description contract.Step) (file *fileio.File, check *StepCheck, err error) {
	description.Initial.File = InitialFile
	model, described, err := export.TrainStep(f.program, f.step, f.initial, description)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", TrainStepFile, err)
	}
	f.described = described
	file, err = export.CheckedStep(filepath.Join(dir, TrainStepFile), model, func(aside string) (err error) {
		check, err = f.check(aside)
		return err
	})
	return file, check, err
}

// writeInitial writes the initial parameters.
func (f *trainStep) writeInitial(dir string) error {
	return fileio.Replace(filepath.Join(dir, InitialFile), ndarray.AppendBytes(nil, f.initial))
}

// check compares one step on seeded random bags. Close to a kink, where a gradient jumps, float32 and
// float64 may differ, so a second draw decides if the first one disagrees.
func (f *trainStep) check(path string) (*StepCheck, error) {
	for draw := range uint64(2) {
		b, s := f.draw(draw)
		diff, where, err := f.difference(s, b, path)
		switch {
		case err != nil:
			return nil, err
		case diff <= stepTolerance:
			return &StepCheck{MaxAbsDiff: diff, Tolerance: stepTolerance, Instances: len(b.BagOf), Bags: b.Bags}, nil
		case draw == 1:
			return nil, fmt.Errorf("one step in onnxruntime is %.3g away from the interpreter in %s; %.0g is allowed", diff,
				where, stepTolerance)
		}
	}
	panic("bug: two draws did not decide")
}

// batch returns the inputs of a step without the state.
func (f *trainStep) batch(b *train.Batch) map[string]onnxruntime.Tensor {
	feed := map[string]onnxruntime.Tensor{}
	var in train.Inputs
	in.SetBatch(f.program, b)
	for _, n := range f.step.ByOp(graph.OpInput) {
		shape := n.Shape.Concrete(len(b.BagOf), b.Bags)
		if n.Type == graph.Int {
			feed[n.Name] = onnxruntime.Tensor{Shape: shape, Ints: ndarray.Convert[int64](in.BagOf)}
		} else if v := in.Floats[n.Name]; v != nil { // not a part of the state
			feed[n.Name] = onnxruntime.Tensor{Shape: shape, Floats: v}
		}
	}
	return feed
}

// draw draws bags of two instances and one, and the state of the optimiser, so that it counts. Means
// of squares are positive. Values that are standardised over the bags of a batch have hardly any
// gradient with two bags, only rounding, so specs with larger batches get up to eight.
func (f *trainStep) draw(draw uint64) (*train.Batch, *train.State) {
	p := f.program
	bags := max(2, min(p.Spec.Train.Batch.V, 8))
	var bagOf []int
	for bag := range bags {
		bagOf = append(bagOf, slices.Repeat([]int{bag}, 2-bag%2)...)
	}
	r := ndarray.NewStream(runs.Seed, "train step", draw)
	normal := func(n int, scale float64) []float32 {
		v := make([]float32, n)
		for i := range v {
			v[i] = float32(scale * r.NormFloat64())
		}
		return v
	}
	k, size, t := p.Signature.Classes, ndarray.Size(p.Signature.Instance), &p.Spec.Train
	b := &train.Batch{
		BagOf: bagOf, Bags: bags, Instances: normal(len(bagOf)*size, 1), Masks: map[string][]float32{},
		Candidates: make([]float32, bags*k), LabelWeights: make([]float32, bags*k),
		Lambda: 0.75, Epoch: p.Spec.Weights.FirstEpoch.V, Epochs: t.Epochs.V, LR: t.LR.V,
		Position: compile.Position{Steps: 2},
	}
	if p.WeighsClasses() {
		for range k {
			b.ClassWeights = append(b.ClassWeights, 0.5+r.Float32())
		}
	}
	for i := range b.Candidates { // every other label, so each bag has at least one unless there is but one class
		if k == 1 || (i/k+i%k)%2 == 0 {
			b.Candidates[i], b.LabelWeights[i] = 1, 0.25+0.5*r.Float32()
		}
	}
	for i := range p.Masks {
		m := &p.Masks[i]
		b.Masks[m.Name] = make([]float32, ndarray.Size(m.Shape.Concrete(len(bagOf), bags)))
		train.NewDropout(m, runs.Seed).Draw(b.Masks[m.Name], int(draw), 1)
	}
	s := &train.State{Params: f.state.Params, Optimizer: map[string][]float32{}}
	least := float32(0)
	// of rmsprop: the gradient, with its rounding, divided by the root
	if slices.Contains(p.OptimizerState(), compile.InVelocity) {
		least = 0.01
	}
	for _, name := range p.OptimizerState() {
		v := normal(p.FlatSize(), 0.01)
		if name == compile.InSecondMoment {
			for i := range v {
				v[i] = least + v[i]*v[i]
			}
		}
		s.Optimizer[name] = v
	}
	return b, s
}

// difference runs the file and the interpreter and returns the largest difference.
func (f *trainStep) difference(state *train.State, batch *train.Batch, path string) (diff float64, where string,
	err error) {
	in := f.batch(batch)
	vectors, _, err := state.Flat(f.program)
	if err != nil {
		return 0, "", err
	}
	for name, v := range vectors {
		in[name] = onnxruntime.Tensor{Shape: []int{len(v)}, Floats: v}
	}
	var got map[string]onnxruntime.Tensor
	var failed error
	var background resources.Group
	background.Go(func() {
		var content []byte
		if content, failed = fileio.Read(path); failed == nil {
			got, failed = onnxruntime.Run(content, in)
		}
	})
	want, err := oracleStep(f.program, state, batch)
	background.Wait()
	if err := errors.Join(failed, err); err != nil {
		return 0, "", err
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		have := got[name].Floats
		if len(have) != len(want[name]) {
			return 0, "", fmt.Errorf("the output %s has %d values, expected %d", name, len(have), len(want[name]))
		}
		for i, w := range want[name] {
			d := math.Abs(float64(have[i])-w) / max(1, math.Abs(w))
			if !(d <= diff) { // NaN counts as a difference
				diff, where = d, fmt.Sprintf("%s, value %d of %d", name, i+1, len(have))
			}
		}
	}
	return diff, where, nil
}

// oracleStep returns the outputs of the training step in float64, computed by the interpreter.
func oracleStep(p *compile.Program, s *train.State, b *train.Batch) (map[string][]float64, error) {
	e, err := train.NewOracle(p)
	if err != nil {
		return nil, err
	}
	defer e.Close()
	if err := e.SetState(s); err != nil {
		return nil, err
	}
	r, err := e.Step(b)
	if err != nil {
		return nil, err
	}
	out := map[string][]float64{
		compile.OutLoss: {r.Loss}, compile.OutProbabilities: ndarray.Convert[float64](r.Probabilities),
		compile.OutAttention:    ndarray.Convert[float64](r.Attention),
		compile.OutLabelWeights: ndarray.Convert[float64](r.LabelWeights),
	}
	for i, name := range p.Terms {
		out[compile.TermPrefix+name] = []float64{r.Terms[i]}
	}
	after, err := e.State()
	if err != nil {
		return nil, err
	}
	for name, v := range after.Optimizer {
		out[compile.UpdatedName(name)] = ndarray.Convert[float64](v)
	}
	out[compile.OutParams] = slices.Clone(e.Params())
	return out, nil
}
