package build

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/export"
	"github.com/miplc/miplc/export/contract"
	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/internal/outfile"
	"github.com/miplc/miplc/internal/stream"
	"github.com/miplc/miplc/internal/workers"
	"github.com/miplc/miplc/runtime/ortenv"
	"github.com/miplc/miplc/train"
	"github.com/miplc/miplc/train/oracle"
	"github.com/miplc/miplc/verify"
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

// trainStep is a training step in a temporary file that agrees with the interpreter.
type trainStep struct {
	file      *outfile.File
	initial   []float32
	described *contract.Step
	check     *StepCheck
}

// writeTrainStep writes the training step to a temporary file and compares one step in onnxruntime
// with the interpreter.
func writeTrainStep(dir string, p *compile.Program, state *train.State, said contract.Step, library string) (*trainStep, error) {
	initial, err := p.Flatten(state.Params)
	if err != nil {
		return nil, err
	}
	s := &trainStep{initial: initial}
	said.Initial.File = InitialFile
	model, described, err := export.TrainStep(p, initial, said)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", TrainStepFile, err)
	}
	s.described = described
	s.file, err = export.CheckedStep(filepath.Join(dir, TrainStepFile), model, func(aside string) (err error) {
		s.check, err = checkStep(p, state, aside, library)
		return err
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// commit writes the files under their final names.
func (s *trainStep) commit(dir string) error {
	if err := s.file.Commit(); err != nil {
		return err
	}
	return outfile.Replace(filepath.Join(dir, InitialFile), ndarray.AppendBytes(nil, s.initial))
}

// checkStep compares one step on seeded random bags. Close to a kink, where a gradient jumps,
// float32 and float64 may differ, so a second draw decides if the first one disagrees.
func checkStep(p *compile.Program, state *train.State, path, library string) (*StepCheck, error) {
	for draw := uint64(0); ; draw++ {
		b, s := stepInput(p, state, draw)
		diff, where, err := stepDifference(p, s, b, path, library)
		switch {
		case err != nil:
			return nil, err
		case diff <= stepTolerance:
			return &StepCheck{MaxAbsDiff: diff, Tolerance: stepTolerance, Instances: len(b.BagOf), Bags: b.Bags}, nil
		case draw == 1:
			return nil, fmt.Errorf("one step in onnxruntime is %.3g away from the interpreter in %s; %.0g is allowed", diff, where, stepTolerance)
		}
	}
}

// stepInput draws two bags of two instances and one, and the state of the optimiser, so
// that it counts. Means of squares are positive.
func stepInput(p *compile.Program, state *train.State, draw uint64) (*train.Batch, *train.State) {
	r := stream.New(verify.Seed, "train step", draw)
	normal := func(n int, scale float64) []float32 {
		v := make([]float32, n)
		for i := range v {
			v[i] = float32(scale * r.NormFloat64())
		}
		return v
	}
	k, size, t := p.Signature.Classes, ndarray.Size(p.Signature.Instance), &p.Spec.Train
	b := &train.Batch{
		BagOf: []int{0, 0, 1}, Bags: 2, Instances: normal(3*size, 1), Masks: map[string][]float32{},
		Candidates: make([]float32, 2*k), Weights: make([]float32, 2*k),
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
			b.Candidates[i], b.Weights[i] = 1, 0.25+0.5*r.Float32()
		}
	}
	for i := range p.Masks {
		m := &p.Masks[i]
		mask := make([]float32, ndarray.Size(m.Shape.Concrete(3, 2)))
		train.DrawMask(mask, float32(1/(1-m.Drop)), m, verify.Seed, int(draw), 1)
		b.Masks[m.Name] = mask
	}
	s := &train.State{Params: state.Params, Optimizer: map[string][]float32{}}
	for _, name := range p.OptimizerState() {
		v := normal(p.FlatSize(), 0.01)
		if name == compile.InSecondMoment {
			for i := range v {
				v[i] *= v[i]
			}
		}
		s.Optimizer[name] = v
	}
	return b, s
}

// stepDifference runs the file and the interpreter and returns the largest difference.
func stepDifference(p *compile.Program, s *train.State, b *train.Batch, path, library string) (diff float64, where string, err error) {
	in, err := stepFeed(p, s, b)
	if err != nil {
		return 0, "", err
	}
	var got map[string]ortenv.Tensor
	var failed error
	var background workers.Group
	background.Go(func() { got, failed = ortenv.RunFile(path, library, in) })
	want, err := oracleStep(p, s, b)
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

// stepFeed returns a batch and a state as the inputs of the training step.
func stepFeed(p *compile.Program, s *train.State, b *train.Batch) (map[string]ortenv.Tensor, error) {
	vectors, _, err := s.Flat(p)
	if err != nil {
		return nil, err
	}
	feed, err := batchFeed(p, b)
	if err != nil {
		return nil, err
	}
	for name, v := range vectors {
		feed[name] = ortenv.Tensor{Shape: []int{len(v)}, Floats: v}
	}
	return feed, nil
}

// batchFeed returns the inputs of the training step without the state.
func batchFeed(p *compile.Program, b *train.Batch) (map[string]ortenv.Tensor, error) {
	step, err := compile.Step(p)
	if err != nil {
		return nil, err
	}
	var in train.Inputs
	if err := in.Batch(p, b, len(b.BagOf), b.Bags); err != nil {
		return nil, err
	}
	feed := map[string]ortenv.Tensor{}
	for _, n := range step.ByOp(graph.OpInput) {
		t := ortenv.Tensor{Shape: n.Shape.Concrete(len(b.BagOf), b.Bags), Floats: in.Floats[n.Name]}
		if n.Type == graph.Int {
			t.Ints = ndarray.Convert[int64](in.BagOf)
		}
		if t.Floats != nil || t.Ints != nil {
			feed[n.Name] = t
		}
	}
	return feed, nil
}

// oracleStep returns the outputs of the training step in float64, computed by the interpreter.
func oracleStep(p *compile.Program, s *train.State, b *train.Batch) (map[string][]float64, error) {
	e, err := oracle.New(p)
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
		compile.OutAttention: ndarray.Convert[float64](r.Attention), compile.OutWeights: ndarray.Convert[float64](r.Weights),
	}
	for name, v := range r.Terms {
		out[compile.TermPrefix+name] = []float64{v}
	}
	after, err := e.State()
	if err != nil {
		return nil, err
	}
	for name, v := range after.Optimizer {
		out[compile.New(name)] = ndarray.Convert[float64](v)
	}
	out[compile.OutParams] = slices.Clone(e.Params())
	return out, nil
}
