package train

import (
	"slices"
	"strings"
	"time"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/data"
)

// Run is a trial under way: an Executor reads from it what to compute and hands
// it what came out.
type Run struct {
	Record
	Place     int // among the runs that go in step, from 0
	fit       *fit
	mean, std []float32 // statistics of the normalisation, shape of one instance; nil: none
	identity  Identity  // without a folder for checkpoints it is empty
	steps     int       // of an epoch
	done      int       // epochs
	resumed   int       // epochs that the checkpoint brought
	saved     time.Time // when the last checkpoint was written, or the run began
	log       *metricsLog
	err       error // that ended the run

	// Of the epoch under way.
	now    Metrics
	before []float32   // label weights before it, [bags, classes]; Weights itself if no bag comes twice
	seen   float64     // bags
	right  counter     // of the predictions made in the steps, each from before its update
	parts  []data.Part // that are evaluated
	found  Found
	// stepped are the probabilities that the steps predicted, by bag; only of a dataset on disk.
	stepped map[int][]float32

	best    best // what train.best has chosen so far
	stopped bool // by train.early_stopping
	final   bool // all epochs are done: what is evaluated is the model to report
}

func newRun(f *fit, t *Trial, place int) *Run {
	r := &Run{Record: Record{Trial: t, Epochs: t.epochs()}, Place: place, fit: f, saved: time.Now()}
	r.steps = len(data.Batches(t.Split.Train, t.Batch()))
	r.Weights = InitialWeights(t.Data)
	r.FollowWeights()
	r.Extend()
	return r
}

// Now is the metrics of the epoch under way: its number and rates stand, the rest
// is still being summed up.
func (r *Run) Now() *Metrics { return &r.now }

// Number is t of the schedules for the epoch under way: the spec says from where
// it counts.
func (r *Run) Number() int { return r.now.Epoch - 1 + r.Program.Spec.Weights.FirstEpoch.V }

// Update returns the number of the update of the parameters, from 1, that a step of the
// epoch under way belongs to. Steps count from 1.
func (r *Run) Update(step int) int { return (r.now.Epoch-1)*r.steps + step }

// Batches are the bags of the steps of the epoch under way.
func (r *Run) Batches() [][]int { return r.BatchesOf(r.now.Epoch) }

// begin starts an epoch.
func (r *Run) begin(epoch int) {
	t := &r.Program.Spec.Train
	r.now = Metrics{Epoch: epoch, Terms: map[string]float64{}, LR: LearningRate(t, r.losses())}
	r.now.Lambda = Lambda(r.Program.Spec.Weights.Schedule.V, r.Number(), r.Epochs)
	r.seen, r.right, r.stepped = 0, counter{}, map[int][]float32{}
	if r.before = r.Weights; t.Sampling.V == "balanced" {
		r.before = slices.Clone(r.Weights)
	}
}

// BagWeightsBefore returns the label weights with which the steps of the epoch under way
// use a bag: those before the epoch, also if it was drawn before, as an engine that
// computes the epoch as a whole has no others.
func (r *Run) BagWeightsBefore(bag int) []float32 {
	return r.before[bag*r.Data.Classes : (bag+1)*r.Data.Classes]
}

// losses are the mean losses of the epochs done.
func (r *Run) losses() []float64 {
	list := make([]float64, len(r.Metrics))
	for i := range list {
		list[i] = r.Metrics[i].Loss
	}
	return list
}

// AddStep records the result of a step of the current epoch, counted from 1;
// probabilities and attention scores may be missing. A value that is not finite
// ends the run: the error, a *NonFiniteError, says so, and what comes later is not
// looked at.
func (r *Run) AddStep(step int, bags []int, out *Result) error {
	if r.err != nil {
		return r.err
	}
	if bad := r.nonFinite(out, bags); bad != nil {
		bad.Epoch, bad.Step, bad.Set = r.now.Epoch, step, r.Data.Name
		r.err = bad
		return bad
	}
	if r.now.Epoch == 1 && step == 1 {
		start := out.Loss
		r.now.StartLoss = &start
	}
	n, k := float64(len(bags)), r.Data.Classes
	r.seen += n
	r.now.Loss += n * out.Loss
	for name, v := range out.Terms {
		r.now.Terms[name] += n * v
	}
	for i, bag := range bags {
		copy(r.BagWeights(bag), out.Weights[i*k:(i+1)*k])
		if out.Probabilities != nil {
			r.right.add(r.truth(bag), Argmax(out.Probabilities[i*k:(i+1)*k]))
			if r.Data.OnDisk() {
				r.stepped[bag] = slices.Clone(out.Probabilities[i*k : (i+1)*k])
			}
		}
	}
	r.fit.stepped(r, step)
	return nil
}

// startPrediction makes room for the predictions that AddPrediction records. For a dataset on
// disk the predictions of the steps stand for those of the training bags, which would be read
// a second time, except in epochs whose attention scores are kept.
func (r *Run) startPrediction() {
	r.parts, r.found = r.evaluated(), Found{}
	for _, part := range r.parts {
		r.found[part.Name] = &Predictions{}
	}
	r.now.FromSteps = len(r.stepped) == len(r.Split.Train) && !r.snapshot(r.now.Epoch) && !r.final
	if !r.now.FromSteps {
		return
	}
	for _, bag := range r.Split.Train {
		r.Add(r.found[data.TrainPart], bag, r.stepped[bag], nil)
	}
}

// evaluated returns the parts of the split that are evaluated now.
func (r *Run) evaluated() []data.Part {
	list := r.Split.Parts()
	if r.testsOnce() && !r.final {
		list = list[:len(list)-1]
	}
	return list
}

// EvaluatedBatches returns the bags to evaluate in batches, part by part, in the order that
// AddPrediction expects. Training bags that the steps predicted are left out.
func (r *Run) EvaluatedBatches() (list [][]int) {
	for _, part := range r.evaluated() {
		if part.Name == data.TrainPart && r.now.FromSteps {
			continue
		}
		list = append(list, data.Batches(part.Bags, r.Batch())...)
	}
	return list
}

// AddPrediction records the probabilities of the classes of a bag and the attention
// scores of its instances: bag by bag in the order of EvaluatedBatches.
func (r *Run) AddPrediction(bag int, probabilities, attention []float32) {
	at := 0
	for at < len(r.parts)-1 && r.found[r.parts[at].Name].Bags() == len(r.parts[at].Bags) {
		at++
	}
	r.Add(r.found[r.parts[at].Name], bag, probabilities, attention)
}

// PredictedBatch reports that so many of the batches of EvaluatedBatches were predicted.
func (r *Run) PredictedBatch(batch, batches int) { r.fit.predicted(r, batch, batches) }

// end closes the epoch after its steps and, where it is evaluated, predictions.
func (r *Run) end(evaluated bool, seconds float64) error {
	if evaluated {
		r.Evaluated(r.now.Epoch, &r.now, r.found)
	}
	r.now.Seconds = seconds
	r.Metrics = append(r.Metrics, r.now)
	r.done = r.now.Epoch
	r.choose(r.now)
	return r.log.add(r.now)
}

// sum turns the sums over the steps into means, and follows the label weights.
func (r *Run) sum() {
	r.now.Loss /= r.seen
	for name := range r.now.Terms {
		r.now.Terms[name] /= r.seen
	}
	r.now.Disambiguation = r.disambiguation()
	r.Extend()
}

// initial is the state that a run from the start begins with.
func (r *Run) initial() (*State, error) {
	state, err := InitState(r.Program, r.Data, r.Split.Train, r.Seed())
	r.mean, r.std = state.Params[compile.ParamMean], state.Params[compile.ParamStd]
	return state, err
}

// checkState makes sure that what an executor gives is whole and finite.
func (r *Run) checkState(s *State) error {
	if r.Program.Normalize {
		s.Params[compile.ParamMean], s.Params[compile.ParamStd] = r.mean, r.std
	}
	if err := CheckState(r.Program, s); err != nil {
		return err
	}
	parts, views := []string{"parameter "}, []map[string][]float32{s.Params}
	for _, name := range r.Program.OptimizerState() {
		if v := s.Optimizer[name]; v != nil {
			parts, views = append(parts, "the "+strings.ReplaceAll(name, "_", " ")+" of parameter "), append(views, r.Program.ParamViews(v))
		}
	}
	for _, p := range r.Program.Params {
		for i, view := range views {
			if at := firstNonFinite(view[p.Name]); at >= 0 {
				return &NonFiniteError{Epoch: r.done, Set: r.Data.Name, What: parts[i] + p.Name, Value: float64(view[p.Name][at])}
			}
		}
	}
	return nil
}

// due reports whether a checkpoint is to be written after the epochs done. The
// last epoch always gets one unless checkpoints are off or come by the clock. Others are
// left out while they would take more than a small share of the time.
func (r *Run) due() bool {
	every := r.Program.Spec.Train.Checkpoint.V
	switch {
	case r.Dir == "":
		return false
	case r.CheckpointInterval > 0:
		return r.fit.over || time.Since(r.saved) >= r.CheckpointInterval || r.refits() && !r.going()
	}
	return every > 0 && (!r.going() || r.done%every == 0 && time.Since(r.fit.kept) >= keepShare*r.fit.keeping)
}

// going reports whether the run has epochs left.
func (r *Run) going() bool { return r.err == nil && !r.stopped && r.done < r.lastEpoch() }

// pick lists the runs that are not over and for which goes holds, nil for all of
// those.
func pick(runs []*Run, goes func(*Run) bool) []*Run {
	return slices.DeleteFunc(slices.Clone(runs), func(r *Run) bool { return r.err != nil || goes != nil && !goes(r) })
}
