// The record of a training, and the report from it.

package train

import (
	"cmp"
	"math"
	"slices"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/data/measure"
)

// Record collects the results of a trial during training, for its report.
type Record struct {
	*Trial
	Epochs int // or iterations of a learner

	Weights      []float32 // label weights of all bags of the dataset, [bags, classes]
	Metrics      []Metrics
	Trajectories []Trajectory
	Attention    []AttentionSnapshot
	Last         PartPredictions // of the last evaluation; nil: none yet
}

// PartPredictions has the predictions of each part of a split, by the names of package data.
// Parts that were not evaluated are missing.
type PartPredictions map[string]*Predictions

// scores returns the attention scores of a part.
func (f PartPredictions) scores(part string) Scores {
	if f[part] == nil {
		return Scores{}
	}
	return f[part].Scores
}

// Predictions are the results of predicting the bags of a part of a split, in its order.
type Predictions struct {
	measure.Predictions
	Scores Scores
}

// Scores are attention scores by the kind of their instance. An instance is positive if its
// label is a true label of its bag, or any class if the label of the bag is not known; else
// negative. Without instance labels all are unknown.
type Scores struct {
	Positive floats `json:",omitempty"`
	Negative floats `json:",omitempty"`
	Unknown  floats `json:",omitempty"`
	// Spreads has the range of the scores of each bag with several instances, as a share of the largest.
	Spreads floats `json:",omitempty"`
}

// maxScores is about the maximum number of attention scores per part of the split, because plots
// and checkpoints contain them. Scores of later bags are dropped.
const maxScores = 1 << 20

func (s *Scores) count() int { return len(s.Positive) + len(s.Negative) + len(s.Unknown) }

// AttentionSnapshot has the attention scores after one epoch.
type AttentionSnapshot struct {
	Epoch int
	Train Scores
	Test  Scores
}

// maxTrajectories is the maximum number of training bags whose label weights are recorded in
// every epoch.
const maxTrajectories = 6

// StartTrajectories selects the training bags whose label weights are recorded, among those with
// more than one candidate, if bags have candidates. They are spread evenly over the split, so that they have several
// classes even if the bags are sorted by class.
func (r *Record) StartTrajectories() {
	var ambiguous []Trajectory
	if r.Data.Multi {
		return
	}
	for _, bag := range r.Split.Train {
		if candidates := r.Data.CandidateList(bag); len(candidates) > 1 {
			ambiguous = append(ambiguous, Trajectory{Bag: bag + 1, Label: r.label(bag), Candidates: candidates})
		}
	}
	n := min(maxTrajectories, len(ambiguous))
	for i := range n {
		r.Trajectories = append(r.Trajectories, ambiguous[i*len(ambiguous)/n])
	}
}

// ExtendTrajectories appends the current label weights to the trajectories.
func (r *Record) ExtendTrajectories() {
	for i := range r.Trajectories {
		tr := &r.Trajectories[i]
		tr.Weights = append(tr.Weights, slices.Clone(r.BagWeights(tr.Bag-1)))
	}
}

// BagWeights returns the row of label weights of a bag, sharing memory.
func (r *Record) BagWeights(bag int) []float32 {
	return r.Weights[bag*r.Data.Classes : (bag+1)*r.Data.Classes]
}

// measured reports whether bags are evaluated after an epoch.
func (r *Record) measured(epoch int) bool {
	return r.evaluated(epoch) || epoch == r.Pause || slices.Contains(r.Curve, epoch)
}

// evaluated reports whether all parts of the split are evaluated after an epoch, except test bags that are evaluated
// once.
func (r *Record) evaluated(epoch int) bool {
	every := r.Program.Spec.Train.EvalEvery.V
	return (!r.OnlySnapshots || r.selects() || r.Program.Spec.Train.DecayMeasure.V != "") && every > 0 &&
		epoch%every == 0 || r.snapshot(epoch) || epoch > r.lastEpoch()-r.LastEpochs
}

// snapshot reports whether the attention scores of an epoch are recorded: those of Snapshots, or
// the first and the middle one, and always the last.
func (r *Record) snapshot(epoch int) bool {
	if r.Snapshots != nil {
		return epoch == r.lastEpoch() || slices.Contains(r.Snapshots, epoch)
	}
	return epoch == 1 || epoch == (r.lastEpoch()+1)/2 || epoch == r.lastEpoch()
}

// lastEpoch returns the epoch after which training ends at the latest.
func (r *Record) lastEpoch() int { return cmp.Or(r.Until, r.Epochs) }

// stopEpoch returns the epoch after which this call ends at the latest.
func (r *Record) stopEpoch() int {
	if r.Pause > 0 {
		return min(r.Pause, r.lastEpoch())
	}
	return r.lastEpoch()
}

// newPredictions returns predictions of a part without bags, with memory for as many scores as those of the last
// evaluation.
func (r *Record) newPredictions(part data.Part) *Predictions {
	o, last := &Predictions{}, r.Last.scores(part.Name)
	o.Grow(len(part.Bags), r.Data.Classes)
	o.Scores.Positive = slices.Grow(o.Scores.Positive, len(last.Positive))
	o.Scores.Negative = slices.Grow(o.Scores.Negative, len(last.Negative))
	o.Scores.Unknown = slices.Grow(o.Scores.Unknown, len(last.Unknown))
	o.Scores.Spreads = slices.Grow(o.Scores.Spreads, len(last.Spreads))
	return o
}

// Add adds the prediction of a bag to o: probabilities [k] and attention scores [n], which it
// copies.
func (r *Record) Add(o *Predictions, bag int, probabilities, attention []float32) {
	o.Threshold = r.threshold()
	o.Predictions.Add(probabilities, r.Data.TrueMask(bag), r.Data.CandidateMask(bag))
	o.AddGroup(r.Data.GroupOf(bag))
	if o.Scores.count() >= maxScores {
		return
	}
	if len(attention) > 1 {
		most := slices.Max(attention)
		o.Scores.Spreads = append(o.Scores.Spreads, (most-slices.Min(attention))/max(most, math.SmallestNonzeroFloat32))
	}
	for i, score := range attention {
		at := r.Data.Offsets[bag] + i
		switch {
		case r.Data.InstLabels == nil:
			o.Scores.Unknown = append(o.Scores.Unknown, score)
		case r.Data.Positive(bag, at):
			o.Scores.Positive = append(o.Scores.Positive, score)
		default:
			o.Scores.Negative = append(o.Scores.Negative, score)
		}
	}
}

// RecordEvaluation records predictions after an epoch and computes the measures of m.
func (r *Record) RecordEvaluation(epoch int, m *Metrics, found PartPredictions) {
	r.Last = found
	m.Measures = r.measuresOf(found)
	if r.snapshot(epoch) {
		r.Attention = append(r.Attention, AttentionSnapshot{epoch, found.scores(data.TrainPart), found.scores(data.TestPart)})
	}
}

// threshold returns the probability above which a class is predicted, 0 if a bag has one label.
func (t *Trial) threshold() float64 {
	if !t.Data.Multi {
		return 0
	}
	return t.Program.Spec.Model.Threshold.V
}

// label returns the true label of a bag, -1 if it is not known or a bag has any number of them.
func (t *Trial) label(bag int) int {
	if class, known := t.Data.Label(bag); known {
		return class
	}
	return -1
}

// Accuracy returns the share of bags whose true label is predicted[i], or nil if no true label is
// known or there are no bags.
func (r *Record) Accuracy(bags, predicted []int) *float64 {
	var c runningMean
	for i, class := range predicted {
		c.add(r.label(bags[i]), class)
	}
	return c.share()
}

// detailPart returns the name of the part of the split whose predictions are reported in
// detail: the test bags, or the training bags if there are no test bags.
func (t *Trial) detailPart() string {
	if len(t.Split.Test) == 0 {
		return data.TrainPart
	}
	return data.TestPart
}

// Report returns the report after the last epoch, which was evaluated. made are the epochs that made the model.
func (r *Record) Report(on EngineInfo, state *State, made []Metrics) *Report {
	final := made[len(made)-1]
	p := &Report{
		Training: Training{Epochs: r.Epochs, Loss: final.Loss}, Engine: on.Engine, On: on,
		Diverged:       cmp.Or(divergence(made, r.Data.Classes, r.Program.Spec), r.collapse(made)),
		Disambiguation: final.Disambiguation, Evaluation: r.evaluation(r.Last, final.Measures),
		Trajectories: r.Trajectories, Metrics: r.Metrics, Attention: r.Attention, Program: r.Program, State: state,
		Weights: r.Weights,
	}
	for _, m := range r.Metrics {
		p.Seconds += m.Seconds
	}
	return p
}

// runningMean computes means, such as the share of correct predictions.
type runningMean struct{ sum, all float64 }

// add adds 1 if a prediction is correct, else 0; nothing if the truth is not known (-1).
func (c *runningMean) add(truth, answer int) {
	if truth < 0 {
		return
	}
	c.all++
	if truth == answer {
		c.sum++
	}
}

// measure adds a value unless it is nil.
func (c *runningMean) measure(v *float64) {
	if v != nil {
		c.sum, c.all = c.sum+*v, c.all+1
	}
}

// mean returns the mean; ok is false without values.
func (c *runningMean) mean() (mean float64, ok bool) {
	if c.all == 0 {
		return 0, false
	}
	return c.sum / c.all, true
}

// share returns the mean, nil of no values.
func (c *runningMean) share() *float64 {
	if c.all == 0 {
		return nil
	}
	v := c.sum / c.all
	return &v
}

// Measures has the measures of each part of a split by the name of the part. Parts without bags
// are missing. Only validation bags and held-out bags of a search have MeasureLoss.
type Measures map[string]measure.Values

// measuresOf computes the measures of the parts that were evaluated.
func (t *Trial) measuresOf(found PartPredictions) Measures {
	m := Measures{}
	for part, p := range found {
		if p.Bags() == 0 {
			continue
		}
		m[part] = p.Values()
		if part != data.ValidationPart && (t.Curve == nil || part != data.TestPart) {
			continue
		}
		if p.Threshold == 0 {
			m[part][MeasureLoss] = candidateLoss(&p.Predictions)
		} else if loss, defined := m[part][measure.LogLoss]; defined {
			m[part][MeasureLoss] = loss
		}
	}
	return m
}

// candidateLoss returns MeasureLoss of bags with candidate sets.
func candidateLoss(p *measure.Predictions) (loss float64) {
	for i := range p.Bags() {
		inside := 0.0
		for c := i * p.Classes; c < (i+1)*p.Classes; c++ {
			if p.Candidates[c] != 0 {
				inside += float64(p.Probabilities[c])
			}
		}
		loss -= math.Log(max(min(inside, 1), 1.0/(1<<23)))
	}
	return loss / float64(p.Bags())
}

// Accuracy returns the share of the bags of a part whose true label is predicted, from 0 to 1. It is nil if
// the part was not measured or no true label is known.
func (m Measures) Accuracy(part string) *float64 { return m[part].Get(measure.Accuracy) }

// Validation returns the measures of the validation bags.
func (m Measures) Validation() measure.Values { return m[data.ValidationPart] }

// Test returns the measures of the test bags.
func (m Measures) Test() measure.Values { return m[data.TestPart] }
