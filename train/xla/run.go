package xla

import (
	"fmt"
	"math"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/train"
)

// run is one job under way.
type run struct {
	*sideBySide
	train.Record // of the data with the job's candidate sets
	job          *Job
	state        *train.State // at the start
	rate         float64
	termWeights  map[string]float64
	seen         float64           // bags of this epoch so far
	found        [2]*train.Outcome // of the evaluation under way
	err          error
}

func newRun(s *sideBySide, job *Job) *run {
	r := &run{sideBySide: s, job: job, rate: job.LR, termWeights: TermWeights(s.program.Spec)}
	r.Record = train.Record{
		Data: s.data, Split: job.Split, Seed: job.Seed, Epochs: s.epochs,
		EvalEvery: s.program.Spec.Train.EvalEvery.V, Snapshots: s.options.Snapshots, Follow: s.options.Follow,
	}
	if job.Candidates != nil {
		own := *s.data
		own.Candidates = job.Candidates
		r.Data = &own
	}
	if r.rate == 0 {
		r.rate = s.program.Spec.Train.LR.V
	}
	for name, w := range job.TermWeights {
		r.termWeights[name] = w
	}
	r.state = train.InitState(s.program, r.Data, job.Split.Train, job.Seed)
	r.Begin()
	return r
}

// TermWeights are the weights of the loss terms of a spec by name, as in Job.
func TermWeights(spec *language.Spec) map[string]float64 {
	weights := map[string]float64{}
	for i := range spec.Loss {
		term := &spec.Loss[i]
		name := term.Kind.V
		if name == "equation" {
			name = term.Name.V
		}
		weights[name] = term.Weight.V
	}
	return weights
}

// batches are the bags of the steps of an epoch.
func (r *run) batches(epoch int) [][]int {
	return data.Batches(data.Order(r.Split.Train, r.Seed, epoch), r.batch)
}

// now is the metrics of the epoch under way.
func (r *run) now() *train.Metrics { return &r.Metrics[len(r.Metrics)-1] }

// take reads what a step recorded: loss, terms, new label weights.
func (r *run) take(epoch, step int, bags []int, row []float32) {
	if r.err != nil {
		return
	}
	if r.err = r.finite(epoch, step, bags, row); r.err != nil {
		return
	}
	m, n := r.now(), float64(len(bags))
	r.seen += n
	m.Loss += n * float64(row[0])
	for i, name := range r.terms {
		m.Terms[name] += n * float64(row[1+i])
	}
	k := r.Data.Classes
	for i, bag := range bags {
		copy(r.BagWeights(bag), row[1+len(r.terms)+i*k:])
	}
}

// finite names the first value of a step that is not finite: the terms in the
// order of the spec, the whole loss, the label weights.
func (r *run) finite(epoch, step int, bags []int, row []float32) error {
	bad := func(what string, v float32) error {
		e := &train.NonFiniteError{Epoch: epoch, Step: step, Set: r.Data.Name, What: what, Value: float64(v)}
		for _, b := range bags {
			e.Bags = append(e.Bags, b+1)
		}
		return e
	}
	finite := func(v float32) bool { return !math.IsNaN(float64(v)) && !math.IsInf(float64(v), 0) }
	for i, name := range r.terms {
		if v := row[1+i]; !finite(v) {
			return bad("loss term "+name, v)
		}
	}
	if !finite(row[0]) {
		return bad("the loss", row[0])
	}
	for _, v := range row[1+len(r.terms) : 1+len(r.terms)+len(bags)*r.Data.Classes] {
		if !finite(v) {
			return bad("a label weight", v)
		}
	}
	return nil
}

// endEpoch turns sums into means and follows the label weights.
func (r *run) endEpoch() {
	m := r.now()
	if r.seen > 0 {
		m.Loss /= r.seen
		for name := range m.Terms {
			m.Terms[name] /= r.seen
		}
	}
	r.seen = 0
	m.Disambiguation = r.Disambiguation()
	r.Extend()
}

// report sums a finished job up.
func (r *run) report(params, velocity []float32) *train.Report {
	state := &train.State{Params: r.program.Unflatten(params), Velocity: r.program.Unflatten(velocity)}
	for name, v := range r.state.Params {
		if _, learned := state.Params[name]; !learned {
			state.Params[name] = v
		}
	}
	return r.Report(fmt.Sprintf("xla, %d jobs side by side", len(r.jobs)), state)
}
