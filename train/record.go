package train

import (
	"cmp"
	"slices"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/measure"
)

// Record is what a trial finds out on the way to its report.
type Record struct {
	*Trial
	Epochs int // or iterations of a learner

	Weights      []float32 // label weights of all bags of the data set, [bags, classes]
	Metrics      []Metrics
	Trajectories []Trajectory
	Attention    []AttentionSnapshot
	Last         Found // at the last evaluation; nil: none yet
}

// Found are the predictions of the bags of the parts of a split, by the names of package
// data. Parts that were not evaluated are missing.
type Found map[string]*Predictions

// scores returns the attention scores of a part.
func (f Found) scores(part string) Scores {
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

// Scores are attention scores by the kind of their instance. An instance is
// positive if its label is the true label of its bag (any class, where the
// bag's label is not known), else negative; without instance labels all are
// Unknown.
type Scores struct {
	Positive []float32
	Negative []float32
	Unknown  []float32
}

// maxScores bounds the attention scores that are kept of a part of the split, which plots and
// checkpoints contain: of more instances only those of the first bags are kept.
const maxScores = 1 << 20

func (s *Scores) count() int { return len(s.Positive) + len(s.Negative) + len(s.Unknown) }

// AttentionSnapshot holds the attention scores after one epoch.
type AttentionSnapshot struct {
	Epoch int
	Train Scores
	Test  Scores
}

// followed is how many training bags have the trajectory of their label weights
// kept.
const followed = 6

// FollowWeights picks the training bags whose weights are followed among those with
// more than one candidate. They are spread evenly over the split, so that several
// classes are shown also where the bags are in the order of their classes.
func (r *Record) FollowWeights() {
	var ambiguous []Trajectory
	for _, bag := range r.Split.Train {
		var candidates []int
		for c, in := range r.Data.CandidateSet(bag) {
			if in != 0 {
				candidates = append(candidates, c)
			}
		}
		if len(candidates) > 1 {
			ambiguous = append(ambiguous, Trajectory{Bag: bag + 1, Label: r.truth(bag), Candidates: candidates})
		}
	}
	n := min(followed, len(ambiguous))
	for i := range n {
		r.Trajectories = append(r.Trajectories, ambiguous[i*len(ambiguous)/n])
	}
}

// Extend appends the label weights of now to the trajectories.
func (r *Record) Extend() {
	for i := range r.Trajectories {
		tr := &r.Trajectories[i]
		tr.Weights = append(tr.Weights, slices.Clone(r.BagWeights(tr.Bag-1)))
	}
}

// BagWeights is the row of label weights of a bag, sharing memory.
func (r *Record) BagWeights(bag int) []float32 {
	return r.Weights[bag*r.Data.Classes : (bag+1)*r.Data.Classes]
}

// measured reports whether an epoch is evaluated.
func (r *Record) measured(epoch int) bool {
	every := r.Program.Spec.Train.EvalEvery.V
	return (!r.OnlySnapshots || r.selects()) && every > 0 && epoch%every == 0 || r.snapshot(epoch)
}

// snapshot reports whether the attention scores of an epoch are kept: those
// that were asked for, or the first and the middle one, and always the last.
func (r *Record) snapshot(epoch int) bool {
	if r.Snapshots != nil {
		return epoch == r.lastEpoch() || slices.Contains(r.Snapshots, epoch)
	}
	return epoch == 1 || epoch == (r.lastEpoch()+1)/2 || epoch == r.lastEpoch()
}

// lastEpoch is the epoch after which training ends at the latest.
func (r *Record) lastEpoch() int { return cmp.Or(r.Until, r.Epochs) }

// Add adds the prediction of a bag: the probabilities of its classes and the attention
// scores of its instances. It copies both.
func (r *Record) Add(o *Predictions, bag int, probabilities, attention []float32) {
	o.Predictions.Add(probabilities, r.truth(bag), r.Data.CandidateSet(bag))
	if o.Scores.count() >= maxScores {
		return
	}
	for i, score := range attention {
		at := r.Data.Offsets[bag] + i
		switch {
		case r.Data.InstLabels == nil:
			o.Scores.Unknown = append(o.Scores.Unknown, score)
		case r.positive(bag, at):
			o.Scores.Positive = append(o.Scores.Positive, score)
		default:
			o.Scores.Negative = append(o.Scores.Negative, score)
		}
	}
}

func (r *Record) positive(bag, instance int) bool {
	label := r.Data.InstLabels[instance]
	if truth := r.truth(bag); truth >= 0 {
		return label == truth
	}
	return label >= 0
}

// Evaluated records predictions after an epoch and computes the measures of m.
func (r *Record) Evaluated(epoch int, m *Metrics, found Found) {
	r.Last = found
	m.Measures = measuresOf(found)
	m.TrainAccuracy, m.TestAccuracy = m.Measures.accuracy(data.TrainPart), m.Measures.accuracy(data.TestPart)
	if r.snapshot(epoch) {
		r.Attention = append(r.Attention, AttentionSnapshot{epoch, found.scores(data.TrainPart), found.scores(data.TestPart)})
	}
}

// truth is the true label of a bag, -1 if not known.
func (r *Record) truth(bag int) int {
	if r.Data.Labels == nil {
		return -1
	}
	return r.Data.Labels[bag]
}

// Accuracy is the share of bags with predicted[i] as true label, nil if no
// true label is known or nothing was predicted.
func (r *Record) Accuracy(bags, predicted []int) *float64 {
	var c counter
	for i, class := range predicted {
		c.add(r.truth(bags[i]), class)
	}
	return c.share()
}

// disambiguation is the share of training bags whose largest label weight is
// on the true label; nil if no true label is known.
func (r *Record) disambiguation() *float64 {
	var c counter
	for _, bag := range r.Split.Train {
		c.add(r.truth(bag), Argmax(r.BagWeights(bag)))
	}
	return c.share()
}

// judged returns the name of the part of the split whose predictions are reported in
// detail: the test bags, or the training bags if there are no test bags.
func (t *Trial) judged() string {
	if len(t.Split.Test) == 0 {
		return data.TrainPart
	}
	return data.TestPart
}

// Report sums a run up after its last epoch, which was evaluated.
func (r *Record) Report(engine string, state *State) *Report {
	final := r.Metrics[len(r.Metrics)-1]
	p := &Report{
		Engine: engine, Seed: r.Seed(), Epochs: r.Epochs,
		TrainBags: len(r.Split.Train), ValidationBags: len(r.Split.Validation), TestBags: len(r.Split.Test),
		Loss: final.Loss, Diverged: divergence(r.Metrics, r.Data.Classes, r.Program.Spec), TrainAccuracy: final.TrainAccuracy, TestAccuracy: final.TestAccuracy, Disambiguation: final.Disambiguation,
		Trajectories: r.Trajectories, Metrics: r.Metrics, Attention: r.Attention, State: state, Weights: r.Weights,
	}
	for _, m := range r.Metrics {
		p.Seconds += m.Seconds
	}
	part := r.judged()
	p.Measures, p.Detail, p.DetailOf = final.Measures, r.Last[part].Detail(r.Data.Names()), part
	return p
}

// counter gives means: of measured values, such as right answers (1) among those
// with a known truth.
type counter struct{ sum, all float64 }

func (c *counter) add(truth, answer int) {
	if truth < 0 {
		return
	}
	c.all++
	if truth == answer {
		c.sum++
	}
}

// measure adds a value that may not be known.
func (c *counter) measure(v *float64) {
	if v != nil {
		c.sum, c.all = c.sum+*v, c.all+1
	}
}

func (c *counter) share() *float64 {
	if c.all == 0 {
		return nil
	}
	v := c.sum / c.all
	return &v
}

// Argmax is the index of the largest value, the first of equals.
func Argmax[T float32 | float64](values []T) int {
	best := 0
	for i, v := range values {
		if v > values[best] {
			best = i
		}
	}
	return best
}
