package xla

import (
	"context"
	"fmt"

	"github.com/gomlx/compute"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/compile/xla"
	"github.com/miplc/miplc/internal/extent"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/train"
)

// jobs is the executor of many runs: each is a job of one program, an epoch one
// call of it, or a few where the masks would take too much memory. A run's result
// is that of the run alone, up to rounding.
type jobs struct {
	backend  *Backend
	program  *compile.Program // with weighable loss terms
	terms    []string
	runs     []*train.Run
	maxFeed  int
	layout   xla.Layout
	step     *xla.Program
	resident map[string]compute.Buffer // the data set, statistics and candidates
	params   compute.Buffer            // [J, P]
	velocity compute.Buffer
	forward  evaluation
}

// openJobs compiles the programs for runs that share one.
func openJobs(b *Backend, runs []*train.Run, maxFeed int) (*jobs, error) {
	s := &jobs{backend: b, runs: runs, maxFeed: maxFeed, resident: map[string]compute.Buffer{}}
	var err error
	if s.program, s.terms, err = xla.Weighted(runs[0].Program); err != nil {
		return nil, err
	}
	d := runs[0].Data
	s.layout = xla.Layout{Jobs: len(runs), Batch: max(1, s.program.Spec.Train.Batch.V), Bags: d.Bags(), Rows: d.Offsets[d.Bags()]}
	steps := 0
	for _, r := range runs {
		for e := 1; e <= r.Epochs; e++ {
			batches := r.BatchesOf(e)
			s.layout.N = max(s.layout.N, s.largest(batches))
			steps = max(steps, len(batches))
		}
	}
	s.layout.Steps = s.stepsOfCall(steps, s.bytesOfStep())
	if s.step, err = xla.Epoch(b.Backend, s.program, s.terms, s.layout); err == nil {
		err = s.forward.begin(s)
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// termWeights are the weights of the loss terms of a spec by name.
func termWeights(spec *language.Spec) map[string]float64 {
	weights := map[string]float64{}
	for i := range spec.Loss {
		weights[spec.Loss[i].Term()] = spec.Loss[i].Weight.V
	}
	return weights
}

// largest is the number of instances of the largest batch.
func (s *jobs) largest(batches [][]int) int {
	most := 0
	for _, bags := range batches {
		n := 0
		for _, b := range bags {
			n += s.runs[0].Data.Size(b)
		}
		most = max(most, n)
	}
	return most
}

// bytesOfStep is what one step takes of a feed.
func (s *jobs) bytesOfStep() int {
	n := 4*s.layout.Batch + 4*xla.EpochWidth(s.program, s.terms, s.layout)
	for _, m := range s.program.Masks {
		n += extent.Size(m.Shape.Concrete(s.layout.N, s.layout.Batch))
	}
	return n * s.layout.Jobs
}

// stepsOfCall bounds the memory of a feed.
func (s *jobs) stepsOfCall(steps, bytes int) int {
	most := s.maxFeed
	if most == 0 {
		most = 256 << 20
	}
	return min(steps, max(1, most/bytes))
}

// SetStates implements train.Executor: what stays on the device moves there.
func (s *jobs) SetStates(list []*train.State) error {
	if err := s.moveData(list); err != nil {
		return err
	}
	var params, velocity []float32
	for _, state := range list {
		p, v, _, err := state.Flat(s.program)
		if err != nil {
			return err
		}
		params, velocity = append(params, p...), append(velocity, v...)
	}
	var err error
	if s.params, err = s.backend.upload(params, s.statePort()); err != nil {
		return err
	}
	s.velocity, err = s.backend.upload(velocity, s.statePort())
	return err
}

func (s *jobs) statePort() xla.Port {
	return xla.Port{Name: "state", Shape: floatShape(len(s.runs), s.program.FlatSize())}
}

// moveData puts the data set on the device.
func (s *jobs) moveData(states []*train.State) error {
	d := s.runs[0].Data
	bags := d.Bags()
	starts, sizes := make([]int32, bags), make([]int32, bags)
	for i := range bags {
		starts[i], sizes[i] = int32(d.Offsets[i]), int32(d.Size(i))
	}
	var sets []float32
	for _, r := range s.runs {
		for _, c := range r.Data.Candidates {
			sets = append(sets, float32(c))
		}
	}
	values := map[string]any{
		xla.InRows: d.Instances[:s.layout.Rows*d.Dim()], xla.InStarts: starts, xla.InSizes: sizes, xla.InSets: sets,
	}
	if s.program.Normalize {
		var mean, std []float32
		for _, state := range states {
			mean, std = append(mean, state.Params[compile.ParamMean]...), append(std, state.Params[compile.ParamStd]...)
		}
		values[xla.InMean], values[xla.InStd] = mean, std
	}
	for _, port := range s.step.Inputs {
		if v, ok := values[port.Name]; ok {
			buffer, err := s.backend.upload(v, port)
			if err != nil {
				return err
			}
			s.resident[port.Name] = exchange(s.resident[port.Name], buffer)
		}
	}
	return nil
}

// call runs a program on resident buffers and values of the host.
func (s *jobs) call(p *xla.Program, values map[string]any) ([]compute.Buffer, error) {
	in := make([]compute.Buffer, len(p.Inputs))
	var own []compute.Buffer
	defer func() { release(own...) }()
	for i, port := range p.Inputs {
		switch port.Name {
		case compile.InParams:
			in[i] = s.params
			continue
		case compile.InVelocity:
			in[i] = s.velocity
			continue
		}
		if in[i] = s.resident[port.Name]; in[i] != nil {
			continue
		}
		v := values[port.Name]
		if port.Name == xla.InTrace {
			v = make([]float32, port.Shape.Size())
		}
		buffer, err := s.backend.upload(v, port)
		if err != nil {
			return nil, err
		}
		in[i] = buffer
		own = append(own, buffer)
	}
	return p.Run(in, nil)
}

// Epoch implements train.Executor.
func (s *jobs) Epoch(ctx context.Context, runs []*train.Run) error {
	values := s.settings(runs)
	feeds, stop := s.feeds(ctx, runs)
	defer stop()
	for f := range feeds {
		if ctx.Err() != nil {
			return nil
		}
		for name, v := range f.values {
			values[name] = v
		}
		out, err := s.call(s.step, values)
		if err != nil {
			return fmt.Errorf("epoch %d, steps %d to %d: %w", f.epoch, f.first+1, f.first+f.steps, err)
		}
		s.params, s.velocity = exchange(s.params, out[0]), exchange(s.velocity, out[1])
		trace, err := fetch(s.step.Outputs[2], out[2])
		if err != nil {
			return err
		}
		s.read(f, runs, trace)
	}
	return nil
}

// settings are the scalars of an epoch and the label weights before it. The
// epoch and the momentum of the label weights are those of all runs that go.
func (s *jobs) settings(runs []*train.Run) map[string]any {
	values := map[string]any{}
	var rates, weights []float32
	for i, r := range s.runs {
		rate := 0.0
		if runs[i] != nil {
			rate = r.Now().LR
			values[compile.InLambda] = []float32{float32(r.Now().Lambda)}
			values[compile.InEpoch] = []float32{float32(r.Number())}
			values[compile.InEpochs] = []float32{float32(r.Epochs)}
		}
		rates = append(rates, float32(rate))
		weights = append(weights, r.Weights...)
	}
	values[compile.InLR], values[xla.InOldWeights] = rates, weights
	for _, name := range s.terms {
		var of []float32
		for _, r := range s.runs {
			of = append(of, float32(termWeights(r.Program.Spec)[name]))
		}
		values[xla.InTermWeight+name] = of
	}
	return values
}

// read hands each run its part of a trace: per step the loss, its terms, the new
// label weights.
func (s *jobs) read(f *feed, runs []*train.Run, trace []float32) {
	width := xla.EpochWidth(s.program, s.terms, s.layout)
	out := train.Result{Terms: map[string]float64{}}
	for i, r := range runs {
		for step, bags := range f.batches[i] {
			row := trace[(step*s.layout.Jobs+i)*width:][:width]
			out.Loss = float64(row[0])
			for t, name := range s.terms {
				out.Terms[name] = float64(row[1+t])
			}
			out.Weights = row[1+len(s.terms):][:len(bags)*r.Data.Classes]
			if r.Took(f.first+step+1, bags, &out) != nil {
				break
			}
		}
	}
}

// States implements train.Executor.
func (s *jobs) States() ([]*train.State, error) {
	var flat [2][]float32
	for i, b := range []compute.Buffer{s.params, s.velocity} {
		flat[i] = make([]float32, s.statePort().Shape.Size())
		if err := b.ToFlatData(flat[i]); err != nil {
			return nil, fmt.Errorf("fetching the states: %w", err)
		}
	}
	list, n := make([]*train.State, len(s.runs)), s.program.FlatSize()
	for i := range list {
		list[i] = train.NewState(s.program, flat[0][i*n:(i+1)*n], flat[1][i*n:(i+1)*n], nil)
	}
	return list, nil
}

// Close frees what lies on the device.
func (s *jobs) Close() error {
	for _, b := range s.resident {
		release(b)
	}
	release(s.params, s.velocity)
	if s.step != nil {
		s.step.Close()
	}
	s.forward.close()
	return nil
}
