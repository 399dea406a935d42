// The state of a trial while it trains.

package train

import (
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/data/measure"
	"github.com/miplc/miplc/internal/ndarray"
)

// Run is a trial during training. An Executor reads from it what to compute, and passes it the
// results.
type Run struct {
	Record
	Index int // among the runs of the group, from 0
	// ClassWeights are the factors [k] of the classes in the loss; nil without train.class_weights.
	ClassWeights []float32
	fit          *fit
	z            data.Normalization // without slices: none
	identity     Identity           // empty without a folder for checkpoints
	steps        int                // number of steps of an epoch
	done         int                // number of finished epochs
	resumed      int                // number of epochs in the checkpoint
	saved        time.Time          // time of the last checkpoint, or of the start
	log          *os.File           // of the metrics; nil: none
	err          error              // that ended the run

	// Of the current epoch.
	now           Metrics
	weightsBefore []float32   // label weights before the epoch, [bags, classes]; Weights itself if no bag is drawn twice
	bagsSeen      float64     // number of bags
	terms         []float64   // sums of the loss terms
	correct       runningMean // of the predictions of the steps
	parts         []data.Part // that are evaluated
	predictions   PartPredictions
	// stepPredictions are the predictions of the training bags by the steps, for a dataset on disk, and
	// those of Predict for bags without a step. scores counts their attention scores.
	stepPredictions map[int]prediction
	keptScores      int

	best    best // choice of train.best so far
	stopped bool // by train.patience
	final   bool // all epochs are done: evaluations are those of the model to report
}

// prediction is that of a bag.
type prediction struct{ probabilities, attention []float32 }

func newRun(f *fit, t *Trial, index int) *Run {
	r := &Run{Record: Record{Trial: t, Epochs: t.Program.Spec.Train.Epochs.V}, Index: index, fit: f, saved: time.Now()}
	r.steps = len(data.Batches(t.Split.Train, t.BatchSize()))
	r.ClassWeights = t.classWeights()
	r.Weights = InitialWeights(t.Data)
	r.StartTrajectories()
	r.ExtendTrajectories()
	return r
}

// Now returns the metrics of the current epoch. Epoch, LR and Lambda are final; the others are
// sums over the steps so far.
func (r *Run) Now() *Metrics { return &r.now }

// ScheduleEpoch returns t of the schedules in the current epoch, counted from
// weights.first_epoch.
func (r *Run) ScheduleEpoch() int { return r.now.Epoch - 1 + r.Program.Spec.Weights.FirstEpoch.V }

// Position returns the position of a step of the current epoch among the updates of the
// parameters. Steps count from 1. The last update of an epoch averages the steps that are
// left, so that no epoch ends with a gradient that has not been used.
func (r *Run) Position(step int) compile.Position {
	n := max(1, r.Program.Spec.Train.Accumulate.V)
	window := (step - 1) / n
	last := min((window+1)*n, r.steps)
	return compile.Position{Update: (r.now.Epoch-1)*((r.steps+n-1)/n) + window + 1, Steps: last - window*n,
		Pending: step < last}
}

// Batches returns the bags of the steps of the current epoch.
func (r *Run) Batches() [][]int { return r.BatchesOf(r.now.Epoch) }

// begin starts an epoch.
func (r *Run) begin(epoch int) {
	t := &r.Program.Spec.Train
	r.now = Metrics{Epoch: epoch, Terms: map[string]float64{}, LR: LearningRate(t, r.Metrics)}
	if r.Rates != nil {
		r.now.LR = r.Rates[epoch-1]
	}
	r.now.Lambda = Lambda(r.Program.Spec.Weights.Schedule.V, r.ScheduleEpoch(), r.Epochs)
	r.terms = make([]float64, len(r.Program.Terms))
	r.bagsSeen, r.correct, r.stepPredictions, r.keptScores = 0, runningMean{}, map[int]prediction{}, 0
	if r.weightsBefore = r.Weights; t.Sampling.V == "balanced" {
		r.weightsBefore = slices.Clone(r.Weights)
	}
}

// BagWeightsBefore returns the label weights of a bag that the steps of the current epoch use:
// those before the epoch, even if an earlier step has drawn the bag, because engines that compute
// whole epochs do not have newer ones.
func (r *Run) BagWeightsBefore(bag int) []float32 {
	return r.weightsBefore[bag*r.Data.Classes : (bag+1)*r.Data.Classes]
}

// AddStep records the result of a step of the current epoch, counted from 1. Probabilities and
// attention scores may be missing. A value that is not finite ends the run with a
// *NonFiniteError; later results are ignored.
func (r *Run) AddStep(step int, bags []int, out *StepResult) error {
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
	r.bagsSeen += n
	r.now.Loss += float64(n * out.Loss)
	for i, v := range out.Terms {
		r.terms[i] += float64(n * v)
	}
	attention, drawn := out.Attention, r.instanceSample(r.now.Epoch)
	for i, bag := range bags {
		copy(r.BagWeights(bag), out.LabelWeights[i*k:(i+1)*k])
		if out.Probabilities != nil {
			r.countCorrect(&r.correct, bag, out.Probabilities[i*k:(i+1)*k])
			if r.Data.OnDisk() {
				r.keepPrediction(bag, out.Probabilities[i*k:(i+1)*k], attention[:min(len(attention), drawn.Size(r.Data.Size(bag)))])
			}
		}
		attention = attention[min(len(attention), drawn.Size(r.Data.Size(bag))):]
	}
	r.fit.steps++
	accuracy, labeled := r.correct.mean()
	r.fit.report(r, Progress{Step: step, Steps: r.steps, Loss: r.now.Loss / r.bagsSeen, Accuracy: accuracy,
		Labeled: labeled})
	return nil
}

// countCorrect adds 1 to c if probabilities predict the true labels of a bag, else 0; nothing if
// they are unknown.
func (r *Record) countCorrect(c *runningMean, bag int, probabilities []float32) {
	if !r.Data.Multi {
		c.add(r.label(bag), measure.Predicted(probabilities))
		return
	}
	equal := 1
	for class, in := range r.Data.TrueMask(bag) {
		if (in == 1) != (float64(probabilities[class]) > r.threshold()) {
			equal = 0
		}
	}
	c.add(1, equal)
}

// keepPrediction keeps the prediction of a training bag. Attention scores are kept in epochs
// that record them, up to maxScores.
func (r *Run) keepPrediction(bag int, probabilities, attention []float32) {
	p := prediction{probabilities: slices.Clone(probabilities)}
	if r.snapshot(r.now.Epoch) && r.keptScores < maxScores {
		p.attention = slices.Clone(attention)
		r.keptScores += len(attention)
	}
	r.stepPredictions[bag] = p
}

// evaluatedParts returns the parts of the split that are evaluated now.
func (r *Run) evaluatedParts() []data.Part {
	list := r.Split.Parts()
	if r.final {
		return list
	}
	if r.testsOnce() {
		list = list[:len(list)-1]
	}
	if !r.evaluated(r.now.Epoch) { // only for the curve of a search
		list = slices.DeleteFunc(list, func(part data.Part) bool { return part.Name == data.TrainPart })
	}
	return list
}

// EvaluatedBatches returns the bags to evaluate in batches, part by part, in the order that
// AddPrediction expects. Training bags that the steps predicted are left out.
func (r *Run) EvaluatedBatches() (list [][]int) {
	for _, part := range r.evaluatedParts() {
		bags := part.Bags
		if part.Name == data.TrainPart && r.now.FromSteps {
			bags = slices.DeleteFunc(slices.Clone(bags), func(bag int) bool {
				return r.stepPredictions[bag].probabilities != nil
			})
		}
		list = append(list, data.Batches(bags, r.BatchSize())...)
	}
	return list
}

// AddPrediction records the probabilities of the classes of a bag and the attention
// scores of its instances: bag by bag in the order of EvaluatedBatches.
func (r *Run) AddPrediction(bag int, probabilities, attention []float32) {
	at := 0
	if r.now.FromSteps {
		if len(r.stepPredictions) < len(r.Split.Train) {
			r.keepPrediction(bag, probabilities, attention)
			return
		}
		at = 1 // after the training bags
	}
	for at < len(r.parts)-1 && r.predictions[r.parts[at].Name].Bags() == len(r.parts[at].Bags) {
		at++
	}
	r.Add(r.predictions[r.parts[at].Name], bag, probabilities, attention)
}

// PredictedBatch reports the number of batches of EvaluatedBatches that are predicted so far.
func (r *Run) PredictedBatch(batch, batches int) {
	r.fit.report(r, Progress{Evaluating: true, Step: batch, Steps: batches, Loss: r.now.Loss})
}

// end ends the epoch after its steps and, if it is evaluated, its predictions.
func (r *Run) end(evaluated bool, seconds float64) error {
	if evaluated {
		if r.now.FromSteps {
			for _, bag := range r.Split.Train {
				r.Add(r.predictions[data.TrainPart], bag, r.stepPredictions[bag].probabilities, r.stepPredictions[bag].attention)
			}
		}
		r.RecordEvaluation(r.now.Epoch, &r.now, r.predictions)
	}
	r.now.Seconds = seconds
	r.Metrics = append(r.Metrics, r.now)
	r.done = r.now.Epoch
	r.choose(r.now)
	if r.log == nil {
		return nil
	}
	return writeMetrics(r.log, r.now)
}

// initial returns the state before the first epoch.
func (r *Run) initial() (*State, error) {
	state, err := InitState(r.Program, r.Data, r.Split.Train, r.Seed())
	maps.Copy(state.Params, r.Init)
	r.z.Mean, r.z.Std = state.Params[compile.ParamMean], state.Params[compile.ParamStd]
	return state, err
}

// checkState returns an error if the state of an executor is not complete and finite.
func (r *Run) checkState(s *State) error {
	if r.Program.Normalize {
		s.Params[compile.ParamMean], s.Params[compile.ParamStd] = r.z.Mean, r.z.Std
	}
	if err := CheckState(r.Program, s); err != nil {
		return err
	}
	parts, views := []string{"parameter "}, []map[string][]float32{s.Params}
	for _, name := range r.Program.OptimizerState() {
		if v := s.Optimizer[name]; v != nil {
			parts, views = append(parts, "the "+strings.ReplaceAll(name, "_", " ")+" of parameter "),
				append(views, r.Program.ParamViews(v))
		}
	}
	for _, p := range r.Program.Params {
		for i, view := range views {
			if at := ndarray.FirstNotFinite(view[p.Name]); at >= 0 {
				return &NonFiniteError{Epoch: r.done, Set: r.Data.Name, What: parts[i] + p.Name, Value: float64(view[p.Name][at])}
			}
		}
	}
	return nil
}

// active reports whether the run has epochs left.
func (r *Run) active() bool { return r.err == nil && !r.stopped && r.done < r.stopEpoch() }

// filter returns the runs without an error that satisfy a condition; nil: all without an error.
func filter(runs []*Run, condition func(*Run) bool) []*Run {
	return slices.DeleteFunc(slices.Clone(runs), func(r *Run) bool {
		return r.err != nil || condition != nil &&
			!condition(r)
	})
}

// disambiguation returns the share of training bags whose largest label weight is that of the
// true label; nil if no true label is known.
func (r *Record) disambiguation() *float64 {
	var c runningMean
	for _, bag := range r.Split.Train {
		c.add(r.label(bag), measure.Argmax(r.BagWeights(bag)))
	}
	return c.share()
}
