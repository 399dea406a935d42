// The training step as an ONNX file for training without miplc, written only if it agrees with the interpreter.

package runs

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/export"
	"github.com/miplc/miplc/internal/contract"
	"github.com/miplc/miplc/internal/fileio"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/internal/onnxruntime"
	"github.com/miplc/miplc/internal/workers"
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

// write writes the training step to a temporary file and compares one step in onnxruntime with the
// interpreter. The caller must commit or discard the file.
func (f *stepForm) write(dir string, said contract.Step, library string) (file *fileio.File, check *StepCheck,
	err error) {
	said.Initial.File = InitialFile
	model, described, err := export.TrainStep(f.program, f.step, f.initial, f.runs, said)
	if err != nil && f.runs != nil {
		return nil, nil, fmt.Errorf("%s cannot be built for several runs, build it without --runs: %w",
			f.program.Spec.Name.V, err)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", TrainStepFile, err)
	}
	f.described = described
	file, err = export.CheckedStep(filepath.Join(dir, TrainStepFile), model, func(aside string) (err error) {
		check, err = f.check(aside, library)
		return err
	})
	return file, check, err
}

// check compares one step on seeded random bags. Close to a kink, where a gradient jumps, float32 and
// float64 may differ, so a second draw decides if the first one disagrees.
func (f *stepForm) check(path, library string) (*StepCheck, error) {
	for draw := range uint64(2) {
		var batches []*train.Batch
		var states []*train.State
		instances, bags := 0, 0
		for run := range f.states {
			b, s := f.draw(run, draw*uint64(len(f.states))+uint64(run))
			batches, states = append(batches, b), append(states, s)
			instances, bags = instances+len(b.BagOf), bags+b.Bags
		}
		diff, where, err := f.difference(states, batches, path, library)
		switch {
		case err != nil:
			return nil, err
		case diff <= stepTolerance:
			return &StepCheck{MaxAbsDiff: diff, Tolerance: stepTolerance, Instances: instances, Bags: bags}, nil
		case draw == 1:
			return nil, fmt.Errorf("one step in onnxruntime is %.3g away from the interpreter in %s; %.0g is allowed", diff,
				where, stepTolerance)
		}
	}
	panic("bug: two draws did not decide")
}

// draw draws bags of two instances and one, and the state of the optimiser, so that it counts. Means
// of squares are positive. Values that are standardised over the bags of a batch have hardly any
// gradient with two bags, only rounding, so specs with larger batches get up to eight.
func (f *stepForm) draw(run int, draw uint64) (*train.Batch, *train.State) {
	p := f.program
	bags, instances := max(2, min(p.Spec.Train.Batch.V, 8)), 2
	if f.runs != nil {
		bags, instances = f.runs.Bags, min(2, f.runs.Instances)
	}
	var bagOf []int
	for bag := range bags {
		bagOf = append(bagOf, slices.Repeat([]int{bag}, min(2-bag%2, instances))...)
	}
	r := ndarray.NewStream(Seed, "train step", draw)
	normal := func(n int, scale float64) []float32 {
		v := make([]float32, n)
		for i := range v {
			v[i] = float32(scale * r.NormFloat64())
		}
		return v
	}
	k, size, t := p.Signature.Classes, ndarray.Size(p.Signature.Instance), &p.Spec.Train
	b := &train.Batch{
		BagOf: bagOf, Bags: bags, Instances: normal(len(bagOf)*size, 1), Masks: map[string][]uint8{},
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
		b.Masks[m.Name] = make([]uint8, ndarray.Size(m.Shape.Concrete(len(bagOf), bags)))
		train.DrawMask(b.Masks[m.Name], m, Seed, int(draw), 1)
	}
	s := &train.State{Params: f.states[run].Params, Optimizer: map[string][]float32{}}
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
func (f *stepForm) difference(states []*train.State, batches []*train.Batch, path, library string) (diff float64,
	where string, err error) {
	in, err := f.feed(states, batches)
	if err != nil {
		return 0, "", err
	}
	var got map[string]onnxruntime.Tensor
	var failed error
	var background workers.Group
	background.Go(func() {
		var content []byte
		if content, failed = fileio.Read(path); failed == nil {
			got, failed = onnxruntime.Run(content, library, in)
		}
	})
	wanted := make([]map[string][]float64, len(states))
	for run := 0; run < len(states) && err == nil; run++ {
		wanted[run], err = oracleStep(f.program, states[run], batches[run])
	}
	background.Wait()
	if err := errors.Join(failed, err); err != nil {
		return 0, "", err
	}
	for run, want := range wanted {
		for _, name := range slices.Sorted(maps.Keys(want)) {
			have := f.output(got, name, run, batches[run])
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
	for name, v := range r.Terms {
		out[compile.TermPrefix+name] = []float64{v}
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
