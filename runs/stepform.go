// The form of an exported training step: for one run and batches of any size, or for several runs side by side.

package runs

import (
	"context"
	"fmt"
	"maps"
	"math"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/compile/graph"
	"github.com/miplc/miplc/compile/onnx"
	"github.com/miplc/miplc/internal/contract"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/internal/onnxruntime"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/train"
)

// stepForm is the form of a training step: for one run and batches of any size, or for several runs
// and padded batches of a fixed size.
type stepForm struct {
	program   *compile.Program
	step      *graph.Graph
	runs      *onnx.Capacity // nil: one run
	trials    []*train.Trial // of the runs; nil: one run
	states    []*train.State // initial ones of the runs
	initial   []float32      // parameters of states as flat vectors
	described *contract.Step // set by write
}

// newStepForm opens the dataset if the step is for several runs.
func newStepForm(ctx context.Context, o *BuildTask, p *compile.Program) (f *stepForm, err error) {
	f = &stepForm{program: p}
	if f.step, err = compile.Step(p); err != nil {
		return nil, err
	}
	if o.Runs > 0 {
		if err := f.openRuns(ctx, o); err != nil {
			return nil, err
		}
	}
	given, err := initialParameters(p, nil, o.Data)
	if err != nil {
		return nil, err
	}
	for run := range max(1, o.Runs) {
		state := train.UntrainedState(p, uint64(p.Spec.Train.Seed.V+run))
		maps.Copy(state.Params, given)
		flat, err := p.Flatten(state.Params)
		if err != nil {
			return nil, err
		}
		f.states, f.initial = append(f.states, state), append(f.initial, flat...)
	}
	return f, nil
}

// openRuns opens the trials of several runs. Each bag gets room for the largest one.
func (f *stepForm) openRuns(ctx context.Context, o *BuildTask) (err error) {
	if f.trials, err = trials(ctx, o); err != nil {
		return err
	}
	first := f.trials[0]
	bags := min(first.BatchSize(), len(first.Split.Train))
	instances := first.Data.MaxInstances(first.Split.Train, 1)
	if n := o.Spec.Data.Sample.V; n > 0 {
		instances = min(n, instances)
	}
	f.runs = &onnx.Capacity{Bags: bags, Instances: instances, Runs: o.Runs}
	return checkStep(fmt.Sprintf("building %d runs of", o.Runs), f.program,
		stepSize{o.Runs * bags * instances, o.Runs * bags})
}

// trials opens the trials of the runs, with consecutive seeds.
func trials(ctx context.Context, o *BuildTask) ([]*train.Trial, error) {
	var specs []*language.Spec
	for run := range max(1, o.Runs) {
		spec := *o.Spec
		spec.Train.Seed.V += run
		specs = append(specs, &spec)
	}
	return Trials(specs, o.Data, EncodeWith(ctx, o.Library, nil))
}

// feed returns the inputs of a step: a state and a batch for each run.
func (f *stepForm) feed(states []*train.State, batches []*train.Batch) (map[string]onnxruntime.Tensor, error) {
	feed := f.batch(batches)
	for _, s := range states {
		vectors, _, err := s.Flat(f.program)
		if err != nil {
			return nil, err
		}
		for name, v := range vectors {
			f.add(feed, name, v)
		}
	}
	return feed, nil
}

// batch returns the inputs of a step without the states: a batch for each run.
func (f *stepForm) batch(batches []*train.Batch) map[string]onnxruntime.Tensor {
	feed := map[string]onnxruntime.Tensor{}
	for _, b := range batches {
		var in train.Inputs
		in.SetBatch(f.program, b, len(b.BagOf), b.Bags)
		if f.runs != nil {
			f.add(feed, onnx.InReal, f.runs.Mask(b.BagOf, 1, 0))
			f.add(feed, onnx.InPadding, f.runs.Mask(b.BagOf, 0, float32(math.Inf(-1))))
		}
		for _, n := range f.step.ByOp(graph.OpInput) {
			v, shape := in.Floats[n.Name], n.Shape.Concrete(len(b.BagOf), b.Bags)
			switch perInstance := n.Shape[0] == graph.N; {
			case n.Type == graph.Int && f.runs == nil:
				feed[n.Name] = onnxruntime.Tensor{Shape: shape, Ints: ndarray.Convert[int64](in.BagOf)}
			case v == nil: // part of the state
			case f.runs == nil:
				feed[n.Name] = onnxruntime.Tensor{Shape: shape, Floats: v}
			case perInstance:
				f.add(feed, n.Name, f.runs.Pad(v, b.BagOf))
			default:
				f.add(feed, n.Name, v)
			}
		}
	}
	return feed
}

// add appends the value of a run to an input, if the step has that input.
func (f *stepForm) add(feed map[string]onnxruntime.Tensor, name string, v []float32) {
	for _, input := range f.described.Inputs {
		if input.Name != name {
			continue
		}
		t := onnxruntime.Tensor{Floats: append(feed[name].Floats, v...)}
		for _, e := range input.Shape {
			t.Shape = append(t.Shape, e.(int)) // batches of any size are not added
		}
		feed[name] = t
	}
}

// output returns an output of a run on a batch.
func (f *stepForm) output(out map[string]onnxruntime.Tensor, name string, run int, b *train.Batch) []float32 {
	all, runs := out[name].Floats, len(f.states)
	v := all[run*len(all)/runs : (run+1)*len(all)/runs]
	if shape := f.step.Output(name).Shape; f.runs != nil && len(shape) > 0 && shape[0] == graph.N {
		return f.runs.Unpad(v, b.BagOf)
	}
	return v
}
