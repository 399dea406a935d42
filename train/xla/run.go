package xla

import (
	"fmt"
	"math"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/specs"
	"github.com/miplc/miplc/train"
)

// run is one job under way.
type run struct {
	*sideBySide
	job          *Job
	data         *data.Dataset // with the job's candidate sets
	state        *train.State  // at the start
	rate         float64
	termWeights  map[string]float64
	weights      []float32 // label weights of all bags, [bags, classes]
	metrics      []train.Metrics
	seen         float64 // bags of this epoch so far
	trajectories []train.Trajectory
	attention    []train.AttentionSnapshot
	predicted    [2][]int // of the training and test bags at the last evaluation
	err          error
}

func newRun(s *sideBySide, job *Job) *run {
	r := &run{sideBySide: s, job: job, data: s.data, rate: job.LR, termWeights: TermWeights(s.program.Spec)}
	if job.Candidates != nil {
		own := *s.data
		own.Candidates = job.Candidates
		r.data = &own
	}
	if r.rate == 0 {
		r.rate = s.program.Spec.Train.LR.V
	}
	for name, w := range job.TermWeights {
		r.termWeights[name] = w
	}
	r.state = train.InitState(s.program, r.data, job.Split.Train, job.Seed)
	r.weights = train.InitialWeights(r.data)
	r.follow()
	return r
}

// TermWeights are the weights of the loss terms of a spec by name, as in Job.
func TermWeights(spec *specs.Spec) map[string]float64 {
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
	return data.Batches(data.Order(r.job.Split.Train, r.job.Seed, epoch), r.batch)
}

// now is the metrics of the epoch under way.
func (r *run) now() *train.Metrics { return &r.metrics[len(r.metrics)-1] }

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
	k := r.data.Classes
	for i, bag := range bags {
		copy(r.weights[bag*k:(bag+1)*k], row[1+len(r.terms)+i*k:])
	}
}

// finite names the first value of a step that is not finite: the terms in the
// order of the spec, the whole loss, the label weights.
func (r *run) finite(epoch, step int, bags []int, row []float32) error {
	bad := func(what string, v float32) error {
		e := &train.NonFiniteError{Epoch: epoch, Step: step, Set: r.data.Name, What: what, Value: float64(v)}
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
	for _, v := range row[1+len(r.terms) : 1+len(r.terms)+len(bags)*r.data.Classes] {
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
	k := r.data.Classes
	m.Disambiguation = r.share(r.job.Split.Train, func(_, bag int) int { return argmax(r.weights[bag*k : (bag+1)*k]) })
	r.extend()
}

// share is the part of the bags with known label whose answer is right; nil if
// none is known.
func (r *run) share(bags []int, answer func(i, bag int) int) *float64 {
	right, all := 0, 0
	for i, bag := range bags {
		truth := r.truth(bag)
		if truth < 0 {
			continue
		}
		all++
		if answer(i, bag) == truth {
			right++
		}
	}
	if all == 0 {
		return nil
	}
	v := float64(right) / float64(all)
	return &v
}

// truth is the true label of a bag, -1 if not known.
func (r *run) truth(bag int) int {
	if r.data.Labels == nil {
		return -1
	}
	return r.data.Labels[bag]
}

// argmax is the index of the largest value, the first of equals.
func argmax(values []float32) int {
	best := 0
	for i, v := range values {
		if v > values[best] {
			best = i
		}
	}
	return best
}

// follow picks the training bags whose label weights are recorded: the first
// with more than one candidate.
func (r *run) follow() {
	n := r.options.Follow
	if n == 0 {
		n = 6
	}
	for _, bag := range r.job.Split.Train {
		var candidates []int
		for c, in := range r.data.CandidateSet(bag) {
			if in != 0 {
				candidates = append(candidates, c)
			}
		}
		if len(candidates) > 1 && len(r.trajectories) < n {
			r.trajectories = append(r.trajectories, train.Trajectory{Bag: bag + 1, Label: r.truth(bag), Candidates: candidates})
		}
	}
	r.extend()
}

func (r *run) extend() {
	k := r.data.Classes
	for i := range r.trajectories {
		t := &r.trajectories[i]
		t.Weights = append(t.Weights, append([]float32(nil), r.weights[(t.Bag-1)*k:t.Bag*k]...))
	}
}

// report sums a finished job up.
func (r *run) report(params, velocity []float32) *train.Report {
	last := r.now()
	p := &train.Report{
		Engine: fmt.Sprintf("xla, %d jobs side by side", len(r.jobs)), Seed: r.job.Seed, Epochs: r.epochs,
		TrainBags: len(r.job.Split.Train), TestBags: len(r.job.Split.Test), Loss: last.Loss,
		TrainAccuracy: last.TrainAccuracy, TestAccuracy: last.TestAccuracy, Disambiguation: last.Disambiguation,
		Trajectories: r.trajectories, Metrics: r.metrics, Attention: r.attention, Weights: r.weights,
		State: &train.State{Params: r.program.Unflatten(params), Velocity: r.program.Unflatten(velocity)},
	}
	for name, v := range r.state.Params {
		if _, learned := p.State.Params[name]; !learned {
			p.State.Params[name] = v
		}
	}
	for _, m := range r.metrics {
		p.Seconds += m.Seconds
	}
	part, bags := 1, r.job.Split.Test
	p.ConfusionOf = "test"
	if len(bags) == 0 {
		part, bags, p.ConfusionOf = 0, r.job.Split.Train, "train"
	}
	p.Confusion = r.confusion(bags, r.predicted[part])
	return p
}

// confusion counts bags by true and predicted class.
func (r *run) confusion(bags, predicted []int) [][]int {
	matrix := make([][]int, r.data.Classes)
	for i := range matrix {
		matrix[i] = make([]int, r.data.Classes)
	}
	for i, bag := range bags {
		if truth := r.truth(bag); truth >= 0 {
			matrix[truth][predicted[i]]++
		}
	}
	return matrix
}
