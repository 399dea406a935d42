package xla

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/compile/xla"
	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/train"
)

// Job is one run among many that share program and data set. Epochs, batch
// size, momentum, weight decay and schedules are those of the spec.
type Job struct {
	Name        string
	Split       *data.Split
	Seed        uint64             // of initial parameters, shuffles and masks
	LR          float64            // starting learning rate; 0: that of the spec
	TermWeights map[string]float64 // weights of loss terms by name; one that is missing is that of the spec
	Candidates  []uint8            // [bags, classes], another draw of the candidate sets; nil: those of the data
}

// Outcome is what became of a job: a report, or the error that ended it
// (a *train.NonFiniteError) while the others went on.
type Outcome struct {
	Job    *Job
	Report *train.Report
	Err    error
}

// JobsOptions tunes RunJobs. The zero value is good.
type JobsOptions struct {
	// MaxFeed bounds the bytes of orders, masks and traces that one call of the
	// program takes; an epoch that needs more runs in parts. 0: 256 MiB.
	MaxFeed int
	// Epoch, if given, is called after every epoch with the newest metrics of
	// the jobs; nil where a job has ended.
	Epoch func(epoch, epochs int, metrics []*train.Metrics)
	// Snapshots are the epochs besides the last one whose attention scores are
	// kept, as in train.Options; nil: the first and the middle one.
	Snapshots []int
	// Follow is how many training bags have the trajectory of their label
	// weights kept; 0: six.
	Follow int
}

// sideBySide is a call of RunJobs under way.
type sideBySide struct {
	ctx      context.Context
	backend  *Backend
	program  *compile.Program // with weighable loss terms
	terms    []string
	data     *data.Dataset
	options  JobsOptions
	jobs     []*run
	epochs   int
	batch    int
	layout   xla.Layout
	step     *xla.Program
	resident map[string]compute.Buffer // the data set, statistics and candidates
	params   compute.Buffer            // [J, P]
	velocity compute.Buffer
	forward  evaluation
}

// RunJobs trains all jobs side by side in one program: each epoch is one call
// of it, or a few where the masks would take too much memory. A job's result is
// that of train.Run with its seed, split and rates, up to rounding. It ends
// early when ctx does; a job whose values stop being finite ends alone.
func RunJobs(ctx context.Context, b *Backend, p *compile.Program, d *data.Dataset, jobs []Job, o JobsOptions) (outcomes []Outcome, err error) {
	s := &sideBySide{ctx: ctx, backend: b, data: d, options: o, resident: map[string]compute.Buffer{},
		epochs: p.Spec.Train.Epochs.V, batch: max(1, p.Spec.Train.Batch.V)}
	if s.program, s.terms, err = xla.Weighted(p); err != nil {
		return nil, err
	}
	if err := s.check(jobs); err != nil {
		return nil, err
	}
	for i := range jobs {
		s.jobs = append(s.jobs, newRun(s, &jobs[i]))
	}
	defer s.close()
	if err := s.begin(); err != nil {
		return nil, err
	}
	for e := 1; e <= s.epochs; e++ {
		if err := s.epoch(e); err != nil {
			return nil, err
		}
	}
	return s.outcomes()
}

// check reports jobs that cannot run.
func (s *sideBySide) check(jobs []Job) error {
	sig := s.program.Signature
	switch {
	case len(jobs) == 0:
		return errors.New("no jobs are given")
	case s.epochs < 1:
		return fmt.Errorf("train.epochs is %d: at least one epoch is needed", s.epochs)
	case s.data.Classes != sig.Classes || s.data.Dim() != size(sig.Instance):
		return fmt.Errorf("%s has %d features and %d classes, the program was compiled for %d and %d",
			s.data.Name, s.data.Dim(), s.data.Classes, size(sig.Instance), sig.Classes)
	}
	for i, j := range jobs {
		if err := s.checkJob(&j); err != nil {
			return fmt.Errorf("job %d %s: %w", i+1, j.Name, err)
		}
	}
	return nil
}

func (s *sideBySide) checkJob(j *Job) error {
	if j.Split == nil || len(j.Split.Train) == 0 {
		return fmt.Errorf("no bag of %s is left for training", s.data.Name)
	}
	if want := s.data.Bags() * s.data.Classes; j.Candidates != nil && len(j.Candidates) != want {
		return fmt.Errorf("%d candidate marks are given, %d bags of %d classes need %d", len(j.Candidates), s.data.Bags(), s.data.Classes, want)
	}
	seen := make([]bool, s.data.Bags())
	for _, bags := range [][]int{j.Split.Train, j.Split.Test} {
		for _, b := range bags {
			if b < 0 || b >= len(seen) || seen[b] {
				return fmt.Errorf("the split names bag %d twice or %s does not have it", b+1, s.data.Name)
			}
			seen[b] = true
		}
	}
	known := map[string]bool{}
	for _, name := range s.terms {
		known[name] = true
	}
	for name := range j.TermWeights {
		if !known[name] {
			return fmt.Errorf("the loss has no term %q; its terms are %v", name, s.terms)
		}
	}
	return nil
}

// begin compiles the program and moves to the device what stays there.
func (s *sideBySide) begin() error {
	s.layout = xla.Layout{Jobs: len(s.jobs), Batch: s.batch, Bags: s.data.Bags(), Rows: s.data.Offsets[s.data.Bags()]}
	steps := 0
	for _, j := range s.jobs {
		for e := 1; e <= s.epochs; e++ {
			batches := j.batches(e)
			s.layout.N = max(s.layout.N, s.largest(batches))
			steps = max(steps, len(batches))
		}
	}
	s.layout.Steps = s.stepsOfCall(steps, s.bytesOfStep())
	var err error
	if s.step, err = xla.Epoch(s.backend.Backend, s.program, s.terms, s.layout); err != nil {
		return err
	}
	if err := s.moveData(); err != nil {
		return err
	}
	if err := s.moveStates(); err != nil {
		return err
	}
	return s.forward.begin(s)
}

// largest is the number of instances of the largest batch.
func (s *sideBySide) largest(batches [][]int) int {
	most := 0
	for _, bags := range batches {
		n := 0
		for _, b := range bags {
			n += s.data.Size(b)
		}
		most = max(most, n)
	}
	return most
}

// bytesOfStep is what one step takes of a feed.
func (s *sideBySide) bytesOfStep() int {
	n := 4*s.layout.Batch + 4*xla.EpochWidth(s.program, s.terms, s.layout)
	for _, m := range s.program.Masks {
		n += size(m.Shape.Concrete(s.layout.N, s.layout.Batch))
	}
	return n * s.layout.Jobs
}

func (s *sideBySide) stepsOfCall(steps, bytes int) int {
	most := s.options.MaxFeed
	if most == 0 {
		most = 256 << 20
	}
	return min(steps, max(1, most/bytes))
}

// moveData puts the data set on the device.
func (s *sideBySide) moveData() error {
	d, bags := s.data, s.data.Bags()
	starts, sizes := make([]int32, bags), make([]int32, bags)
	for i := range bags {
		starts[i], sizes[i] = int32(d.Offsets[i]), int32(d.Size(i))
	}
	var sets []float32
	for _, j := range s.jobs {
		for _, c := range j.Data.Candidates {
			sets = append(sets, float32(c))
		}
	}
	values := map[string]any{
		xla.InRows: d.Instances[:s.layout.Rows*d.Dim()], xla.InStarts: starts, xla.InSizes: sizes, xla.InSets: sets,
	}
	if s.program.Normalize {
		var mean, std []float32
		for _, j := range s.jobs {
			mean, std = append(mean, j.state.Params[compile.ParamMean]...), append(std, j.state.Params[compile.ParamStd]...)
		}
		values[xla.InMean], values[xla.InStd] = mean, std
	}
	for _, port := range s.step.Inputs {
		if v, ok := values[port.Name]; ok {
			buffer, err := s.backend.upload(v, port)
			if err != nil {
				return err
			}
			s.resident[port.Name] = buffer
		}
	}
	return nil
}

// moveStates puts the starting parameters and velocities on the device.
func (s *sideBySide) moveStates() error {
	var params, velocity []float32
	for _, j := range s.jobs {
		p, v, err := flatten(s.program, j.state)
		if err != nil {
			return err
		}
		params, velocity = append(params, p...), append(velocity, v...)
	}
	port := xla.Port{Name: "state", Shape: floatShape(len(s.jobs), s.program.FlatSize())}
	var err error
	if s.params, err = s.backend.upload(params, port); err != nil {
		return err
	}
	s.velocity, err = s.backend.upload(velocity, port)
	return err
}

// call runs a program on resident buffers and values of the host.
func (s *sideBySide) call(p *xla.Program, values map[string]any) ([]compute.Buffer, error) {
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

// epoch trains one epoch of all jobs and measures it.
func (s *sideBySide) epoch(epoch int) error {
	begin := time.Now()
	values := s.settings(epoch)
	feeds, stop := s.feeds(epoch)
	defer stop()
	for f := range feeds {
		if err := s.ctx.Err(); err != nil {
			return fmt.Errorf("training stopped in epoch %d of %d: %w", epoch, s.epochs, err)
		}
		for name, v := range f.values {
			values[name] = v
		}
		out, err := s.call(s.step, values)
		if err != nil {
			return fmt.Errorf("epoch %d, steps %d to %d: %w", epoch, f.first+1, f.first+f.steps, err)
		}
		s.params, s.velocity = exchange(s.params, out[0]), exchange(s.velocity, out[1])
		trace, err := fetch(s.step.Outputs[2], out[2])
		if err != nil {
			return err
		}
		s.read(f, trace)
	}
	if err := s.ctx.Err(); err != nil {
		return fmt.Errorf("training stopped in epoch %d of %d: %w", epoch, s.epochs, err)
	}
	return s.measure(epoch, begin)
}

// settings are the scalars of an epoch and the label weights before it.
func (s *sideBySide) settings(epoch int) map[string]any {
	t := &s.program.Spec.Train
	number := epoch - 1 + s.program.Spec.Weights.FirstEpoch.V
	lambda := train.Lambda(s.program.Spec.Weights.Schedule.V, number, s.epochs)
	values := map[string]any{
		compile.InLambda: []float32{float32(lambda)},
		compile.InEpoch:  []float32{float32(number)},
		compile.InEpochs: []float32{float32(s.epochs)},
	}
	var rates, weights []float32
	for _, j := range s.jobs {
		j.Metrics = append(j.Metrics, train.Metrics{Epoch: epoch, Lambda: lambda,
			LR: train.LearningRate(t.Schedule.V, j.rate, epoch-1, s.epochs), Terms: map[string]float64{}})
		rates = append(rates, float32(j.now().LR))
		weights = append(weights, j.Weights...)
	}
	values[compile.InLR], values[xla.InOldWeights] = rates, weights
	for _, name := range s.terms {
		var of []float32
		for _, j := range s.jobs {
			of = append(of, float32(j.termWeights[name]))
		}
		values[xla.InTermWeight+name] = of
	}
	return values
}

// read hands each job its part of a trace.
func (s *sideBySide) read(f *feed, trace []float32) {
	width := xla.EpochWidth(s.program, s.terms, s.layout)
	for step := range f.steps {
		for i, j := range s.jobs {
			if batches := f.batches[i]; step < len(batches) {
				row := trace[(step*s.layout.Jobs+i)*width:]
				j.take(f.epoch, f.first+step+1, batches[step], row[:width])
			}
		}
	}
}

// measure ends an epoch.
func (s *sideBySide) measure(epoch int, begin time.Time) error {
	for _, j := range s.jobs {
		j.endEpoch()
	}
	if s.jobs[0].Measured(epoch) {
		if err := s.forward.run(epoch); err != nil {
			return fmt.Errorf("evaluation after epoch %d: %w", epoch, err)
		}
	}
	latest := make([]*train.Metrics, len(s.jobs))
	seconds := time.Since(begin).Seconds() / float64(len(s.jobs))
	for i, j := range s.jobs {
		j.now().Seconds = seconds
		if j.err == nil {
			latest[i] = j.now()
		}
	}
	if s.options.Epoch != nil {
		s.options.Epoch(epoch, s.epochs, latest)
	}
	return nil
}

// outcomes fetches the last states and sums all jobs up.
func (s *sideBySide) outcomes() ([]Outcome, error) {
	port := xla.Port{Name: "state", Shape: shapes.Make(dtypes.Float32, len(s.jobs), s.program.FlatSize())}
	params, err := fetch(port, s.params)
	if err != nil {
		return nil, err
	}
	velocity, err := fetch(port, s.velocity)
	if err != nil {
		return nil, err
	}
	s.params, s.velocity = nil, nil
	list, n := make([]Outcome, len(s.jobs)), s.program.FlatSize()
	for i, j := range s.jobs {
		list[i] = Outcome{Job: j.job, Err: j.err}
		if j.err == nil {
			list[i].Report = j.report(params[i*n:(i+1)*n], velocity[i*n:(i+1)*n])
		}
	}
	return list, nil
}

// close frees what lies on the device.
func (s *sideBySide) close() {
	for _, b := range s.resident {
		release(b)
	}
	release(s.params, s.velocity)
	if s.step != nil {
		s.step.Close()
	}
	s.forward.close()
}
