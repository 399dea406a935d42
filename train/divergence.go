// Trainings whose loss exploded or that collapsed.

package train

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/data/measure"
	"github.com/miplc/miplc/language"
)

// Divergence reports that the loss of a training exploded, or that the training collapsed: its loss fell and rose
// again, or it learned to predict one class only. The model is then not usable. A loss that is not finite ends a
// training instead, see NonFiniteError.
type Divergence struct {
	// with the largest mean loss, from 1; if the training collapsed, with the smallest
	Epoch int      `json:"epoch"`
	Loss  float64  `json:"loss"`                // mean of that epoch
	Start float64  `json:"start_loss"`          // loss of the first step, before any update
	Last  *float64 `json:"last_loss,omitempty"` // mean of the last epoch if the training collapsed, else nil
	// Class is the class that all training bags are predicted as, "" if the training did not collapse to one class.
	Class string `json:"collapsed_to,omitempty"`
	// Advice is what to change in the spec.
	Advice string `json:"advice"`
}

// Verdict returns DIVERGED or COLLAPSED.
func (d *Divergence) Verdict() string {
	if d.Last != nil {
		return "COLLAPSED"
	}
	return "DIVERGED"
}

func (d *Divergence) String() string {
	if d.Class != "" {
		return fmt.Sprintf("training collapsed: the model predicts %s for all training bags, and the loss was %.4g in the "+
			"first step and %.4g in the last epoch; %s",
			d.Class, d.Start, *d.Last, d.Advice)
	}
	if d.Last != nil {
		return fmt.Sprintf("training collapsed: the loss was %.4g in the first step, %.4g in epoch %d and %.4g in the "+
			"last epoch; %s", d.Start, d.Loss, d.Epoch, *d.Last, d.Advice)
	}
	return fmt.Sprintf("training diverged: the loss was %.4g in the first step and %.4g in epoch %d; %s", d.Start, d.Loss,
		d.Epoch, d.Advice)
}

// advice returns what to change in a spec whose training diverged.
func advice(spec *language.Spec) string {
	text := fmt.Sprintf("lower train.lr, for instance to %.3g", spec.Train.LR.V/10)
	if spec.Train.Clip.V == 0 {
		text = "clip the gradients with train.clip: 1, or " + text
	}
	if spec.Data.Normalize.V == "none" {
		text += ", and normalise the features with data.normalize: training"
	}
	return text
}

// Limits in multiples of the scale of the loss, see divergence. Trainings of shipped specs that
// learn, on generated bags, Birdsong-MIPL and MNIST-MIPL, have a mean loss per epoch of at most
// 1.1 times the scale. It is 40 times the scale for proden-maxmin with the learning rate 0.1, and
// 70,000 times for gated ABMIL with 0.02.
const (
	exploded  = 5   // an epoch with a larger mean loss has exploded
	recovered = 0.5 // a training whose last epoch has a smaller mean loss has recovered
	risen     = 2   // a training whose last epoch has a larger mean loss has not learned
)

// Limits of a collapse, as shares: of the scale of the loss, and of the fall below it.
const (
	learned = 0.05 // a loss that has fallen by less has no fall to lose
	lost    = 0.5  // a training whose loss has risen by more of its fall has collapsed
)

// Limits of a collapse to one class: a shorter training may not have begun to learn, and a loss below this share of
// the smaller of log(classes) and the first loss has been learned.
const (
	collapseEpochs = 10
	unlearned      = 0.95
)

// collapse returns nil unless a training, of the given epochs, learned nothing and predicts one class for all training
// bags, although a candidate set excludes this class.
func (r *Record) collapse(made []Metrics) *Divergence {
	if len(made) < collapseEpochs || made[0].StartLoss == nil || r.Program.Spec.Multi() {
		return nil
	}
	start, last, p := *made[0].StartLoss, made[len(made)-1].Loss, r.Last[data.TrainPart]
	if p == nil || p.Bags() == 0 || last < unlearned*min(start, math.Log(float64(r.Data.Classes))) {
		return nil
	}
	class, excluded := measure.Argmax(p.Probabilities[:p.Classes]), false
	for i := range p.Bags() {
		row := i * p.Classes
		if measure.Argmax(p.Probabilities[row:row+p.Classes]) != class {
			return nil
		}
		excluded = excluded || p.Candidates[row+class] == 0
	}
	if !excluded {
		return nil
	}
	best := slices.MinFunc(made, func(a, b Metrics) int { return cmp.Compare(a.Loss, b.Loss) })
	return &Divergence{Epoch: best.Epoch, Loss: best.Loss, Start: start, Last: &last,
		Class: r.Data.AllClassNames()[class], Advice: advice(r.Program.Spec)}
}

// divergence returns nil if a training did not diverge. The scale of a loss is the larger of
// log(classes), the cross-entropy of equal probabilities, and the loss of the first step, which
// contains terms of any size. A training diverged if the mean loss of its last epoch is above
// twice the scale; or if that of any epoch is above 5 times the scale and that of the last epoch
// is neither below half of log(classes) nor below half of the first loss. A training collapsed if its
// loss fell by at least 5 % of the scale and rose again by more than half of its fall. Fitted learners
// have no first step and never diverge.
func divergence(metrics []Metrics, classes int, spec *language.Spec) *Divergence {
	if len(metrics) == 0 || metrics[0].StartLoss == nil {
		return nil
	}
	start := *metrics[0].StartLoss
	if spec.Multi() {
		classes = 2 // each label is present or absent
	}
	uniform := math.Log(float64(max(classes, 2)))
	scale := max(uniform, start)
	d := &Divergence{Start: start, Loss: math.Inf(-1), Advice: advice(spec)}
	best := metrics[0]
	for _, m := range metrics {
		if m.Loss > d.Loss {
			d.Epoch, d.Loss = m.Epoch, m.Loss
		}
		if m.Loss < best.Loss {
			best = m
		}
	}
	last := metrics[len(metrics)-1].Loss
	low := min(uniform, max(start, 0))
	if last > risen*scale || d.Loss > exploded*scale && last > recovered*low {
		return d
	}
	if fall := scale - best.Loss; fall > learned*scale && last > best.Loss+lost*fall {
		return &Divergence{Epoch: best.Epoch, Loss: best.Loss, Start: start, Last: &last, Advice: d.Advice}
	}
	return nil
}
