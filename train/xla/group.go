// A group of trials on a device.

package xla

import (
	"context"
	"fmt"
	"maps"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/compile/xla"
	"github.com/miplc/miplc/train"
)

// executor is that of one or more runs, each a trial of one program. An epoch is one call of the
// program, or a few if its masks need too much memory. The result of a run does not depend on the
// others, except for rounding. Dataset, statistics, candidates, parameters and the state of the
// optimiser stay on the device.
type executor struct {
	*plan
	backend           *Device
	runs              []*train.Run
	device            buffers
	epoch, evaluation *xla.Executable
}

// openGroup returns the executor of runs that share their programs.
func (t *Trainer) openGroup(runs []*train.Run, note func(string)) (train.Executor, error) {
	trials := make([]*train.Trial, len(runs))
	for i, r := range runs {
		trials[i] = r.Trial
	}
	p, err := t.plan(trials)
	if err == nil {
		err = p.budget.Check(p.subject(), p.bytes(), "use smaller batches (train.batch), or set the available memory with "+
			"--device-memory")
	}
	if err != nil {
		return nil, err
	}
	s := &executor{backend: t.Device, plan: p, runs: runs, device: buffers{}}
	s.epoch, s.evaluation, err = t.Device.programs(p, note)
	return s, err
}

// SetStates implements train.Executor. It copies all values that stay on the device.
func (s *executor) SetStates(list []*train.State) error {
	d := s.runs[0].Data
	instances, err := d.All()
	if err != nil {
		return err
	}
	starts, sizes := make([]int32, d.Bags()), make([]int32, d.Bags())
	for i := range starts {
		starts[i], sizes[i] = int32(d.Offsets[i]), int32(d.Size(i))
	}
	var sets, mean, std []float32
	vectors := map[string][]float32{}
	for i, state := range list {
		for _, c := range s.runs[i].Data.Candidates {
			sets = append(sets, float32(c))
		}
		own, statistics, err := state.Flat(s.graphs.Program)
		if err != nil {
			return err
		}
		for name, v := range own {
			vectors[name] = append(vectors[name], v...)
		}
		mean, std = append(mean, statistics[compile.ParamMean]...), append(std, statistics[compile.ParamStd]...)
	}
	values := map[string]any{
		xla.InRows: instances[:s.train.Rows*d.Dim()], xla.InStarts: starts, xla.InSizes: sizes, xla.InSets: sets,
		xla.InMean: mean, xla.InStd: std,
	}
	for name, v := range vectors {
		values[name] = v
	}
	for _, port := range s.epoch.Inputs {
		if v, ok := values[port.Name]; ok {
			if err := s.device.put(s.backend, v, port); err != nil {
				return err
			}
		}
	}
	return nil
}

// States implements train.Executor.
func (s *executor) States() ([]*train.State, error) {
	flat, n := map[string][]float32{}, s.graphs.FlatSize()
	for _, port := range s.epoch.Outputs {
		if b := s.device[port.Name]; b != nil {
			var err error
			if flat[port.Name], err = fetch(port.Name, b); err != nil {
				return nil, err
			}
		}
	}
	list := make([]*train.State, len(s.runs))
	for i := range list {
		own := map[string][]float32{}
		for name, v := range flat {
			own[name] = v[i*n : (i+1)*n]
		}
		list[i] = train.NewState(s.graphs.Program, own, nil)
	}
	return list, nil
}

// Epoch implements train.Executor.
func (s *executor) Epoch(ctx context.Context, runs []*train.Run) error {
	from := &feeder{layout: s.train, runs: s.runs, graphs: s.graphs, batches: make([][][]int, len(s.runs))}
	for _, r := range runs {
		from.batches[r.Index], from.epoch = r.Batches(), r.Now().Epoch
	}
	err := s.run(ctx, s.epoch, from, s.settings(runs), s.addSteps)
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("epoch %d, %w", from.epoch, err)
	}
	return nil
}

// Predict implements train.Executor.
func (s *executor) Predict(ctx context.Context, runs []*train.Run) error {
	from := &feeder{layout: s.test, batches: make([][][]int, len(s.runs))}
	for _, r := range runs {
		from.batches[r.Index] = r.EvaluatedBatches()
	}
	return s.run(ctx, s.evaluation, from, nil, s.addPredictions)
}

// run runs a program on the batches of all runs, in one or more calls. read gets the trace of each
// call.
func (s *executor) run(ctx context.Context, p *xla.Executable, from *feeder, settings map[string]any,
	read func(*feed, []float32)) error {
	feeds, stop := from.feeds(ctx)
	defer stop()
	for f := range feeds {
		maps.Copy(f.values, settings)
		trace, err := s.device.call(s.backend, p, f.values)
		if err != nil {
			return fmt.Errorf("steps %d to %d: %w", f.first+1, f.first+f.steps, err)
		}
		read(f, trace)
	}
	return ctx.Err()
}

// settings returns the scalars of an epoch and the label weights before it. All runs in the list
// have the same epoch and momentum of the label weights.
func (s *executor) settings(runs []*train.Run) map[string]any {
	values := map[string]any{}
	rates := make([]float32, len(s.runs))
	for _, r := range runs {
		rates[r.Index] = float32(r.Now().LR)
		values[compile.InLambda] = []float32{float32(r.Now().Lambda)}
		values[compile.InEpoch] = []float32{float32(r.ScheduleEpoch())}
		values[compile.InEpochs] = []float32{float32(r.Epochs)}
	}
	of := map[string][]float32{}
	for _, r := range s.runs {
		of[xla.InOldWeights] = append(of[xla.InOldWeights], r.Weights...)
		of[compile.InClassWeights] = append(of[compile.InClassWeights], r.ClassWeights...)
		for name, weight := range train.TermWeights(r.Program.Spec) {
			of[compile.TermWeightPrefix+name] = append(of[compile.TermWeightPrefix+name], float32(weight))
		}
		for i := range r.Program.Masks {
			m := &r.Program.Masks[i]
			of[xla.InScale+m.Name] = append(of[xla.InScale+m.Name], m.Scale())
		}
		for _, s := range r.Program.Settings(nil) {
			of[s.Name] = append(of[s.Name], float32(s.Value))
		}
	}
	for name, v := range of {
		values[name] = v
	}
	values[compile.InLR] = rates
	return values
}

// addSteps passes each run its part of the trace of an epoch: loss, terms and new label weights of
// each step.
func (s *executor) addSteps(f *feed, trace []float32) {
	width := s.graphs.EpochWidth(s.train)
	out := train.StepResult{Terms: make([]float64, len(s.graphs.Terms))}
	for i, r := range s.runs {
		for step, bags := range f.batches[i] {
			row := trace[(step*len(s.runs)+i)*width:][:width]
			out.Loss = float64(row[0])
			for t := range out.Terms {
				out.Terms[t] = float64(row[1+t])
			}
			out.LabelWeights = row[1+len(s.graphs.Terms):][:len(bags)*r.Data.Classes]
			if r.AddStep(f.first+step+1, bags, &out) != nil {
				break
			}
		}
	}
}

// addPredictions passes each run its predictions and attention scores in a trace.
func (s *executor) addPredictions(f *feed, trace []float32) {
	l, k := s.test, s.graphs.Signature.Classes
	width := s.graphs.ForwardWidth(l)
	for i, r := range s.runs {
		for step, bags := range f.batches[i] {
			row := trace[(step*len(s.runs)+i)*width:][:width]
			attention := row[l.Batch*k:]
			for slot, bag := range bags {
				n := r.Data.Size(bag)
				r.AddPrediction(bag, row[slot*k:(slot+1)*k], attention[:n])
				attention = attention[n:]
			}
		}
	}
}

// Close frees the values on the device.
func (s *executor) Close() error {
	s.device.free()
	return nil
}
