// Package judge judges finished runs: weaknesses that the accuracy alone does not show, with advice, and a baseline on
// the same split.
package judge

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/data/measure"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/train"
)

// Finding is a weakness of a run or of its data.
type Finding struct {
	Name   string  `json:"finding"` // of the table
	Value  float64 `json:"value"`   // the number that exceeds the threshold of the table
	Text   string  `json:"text"`
	Advice string  `json:"advice,omitempty"`
}

// maxFindings is the number of findings of a run that are reported.
const maxFindings = 5

// Thresholds of the findings. docs/studies.md says how often each appears in good and in spoiled runs.
const (
	overfit       = 0.1  // of the training accuracy above the interval of the test accuracy
	overfitSets   = 0.2  // the same of the shares of predictions inside the candidate sets
	supported     = 5    // test bags of a class that should be predicted
	rare          = 5    // training bags with a candidate, below which a class is hard to learn
	fallen        = 0.1  // of the accuracy below its best
	flat          = 0.05 // range of the scores of a bag, as a share of the largest, below which they are nearly equal
	flatBags      = 0.9  // share of bags whose attention scores are nearly equal
	miscalibrated = 0.2  // expected calibration error
	uncertain     = 0.3  // width of the interval of the test accuracy
	disagreeing   = 0.1  // between the accuracies on validation and test bags
	unmoved       = 0.02 // mean distance that the label weights moved from uniform towards one label
	jumping       = 0.12 // share of the last epochs in which the likeliest candidate of a bag changes
	leap          = 0.2  // change of a label weight in an epoch that is no crossing of nearly equal weights
	doubted       = 0.1  // probability of all candidates together, with more than 0.8 for another class
	confident     = 0.95 // share of training bags whose prediction is a candidate, in a model that is sure
	constants     = 0.5  // share of features that do not vary
	copied        = 0.02 // share of test bags that are nearly equal to a training bag
	noisy         = 0.1  // share of candidate sets without the true label
	missed        = 0.05 // of the predictions inside candidate sets below the test accuracy
)

// judged is a run whose findings are sought.
type judged struct {
	*train.Trial
	*train.Evaluation // by the model file
	report            *train.Report
	baseline          *Baseline
	facts             *bagFacts
}

// findingTable has one row per finding, the most harmful first. A row returns the number, what is found in words, or ""
// for nothing.
var findingTable = []struct {
	name, advice string
	find         func(j *judged) (value float64, text string)
}{
	{"constant", "check how the features were computed and which columns were read", (*judged).constantFeatures},
	{"failed", "", (*judged).failed},
	{"copies", "remove the copies, or keep them in one part of the split with data.split.group", (*judged).copies},
	{"leak", "check that the feature is not made from the label; if it is, remove it", (*judged).leak},
	{"guessing", "check the labels and the features, or train longer", (*judged).guessing},
	{"noise", "check how the candidates were made, and trust only measures of bags with true labels",
		(*judged).noisyCandidates},
	{"contradictions", "correct the labels of these bags, or remove them", (*judged).contradictions},
	{"baseline", "check data.normalize and train.lr, or use the simpler model", (*judged).beaten},
	{"overfitting",
		"train fewer epochs (train.best with validation bags), use a smaller model, more dropout, or fewer features",
		(*judged).overfit},
	{"classes", "use train.sampling: balanced or train.class_weights: balanced, or more bags of these classes",
		(*judged).unpredicted},
	{"fallen", "choose the epoch with train.best and validation bags, or lower train.lr", (*judged).fallen},
	{"attention", "for scores that show where, use gated-abmil or another model with a softmax over the bag",
		(*judged).flatAttention},
	{"weights", "train longer, raise train.lr, or check the section weights of the spec", (*judged).unmovedWeights},
	{"jumps", "lower train.lr, or train more epochs: the label weights have not settled", (*judged).jumpingWeights},
	{"candidates", "look at these bags: noise can also make a correctly labelled bag look like another class",
		(*judged).rejectedCandidates},
	{"calibration", "use export.temperature, or read the order of the probabilities only", (*judged).miscalibrated},
	{"disagreement", "the parts differ in more than chance: check how they were drawn", (*judged).disagreement},
	{"rare", "more bags of these classes would help", (*judged).rareClasses},
	{"test bags", "use more test bags, or folds in an experiment", (*judged).uncertain},
}

// Judge returns the baseline of a run and its findings. found is the evaluation of its model file.
func (b *Baselines) Judge(ctx context.Context, t *train.Trial, r *train.Report, found *train.Evaluation) (*Baseline,
	[]Finding, error) {
	e, err := b.of(ctx, t)
	if err != nil {
		return nil, nil, fmt.Errorf("baseline of %s: %w", t.Data.Name, err)
	}
	return e.baseline, findingsOf(t, r, found, e), nil
}

func findingsOf(t *train.Trial, r *train.Report, measured *train.Evaluation, e *examination) []Finding {
	j, found := &judged{t, measured, r, e.baseline, e.facts}, []Finding{}
	for _, row := range findingTable {
		if value, text := row.find(j); text != "" && len(found) < maxFindings {
			found = append(found, Finding{row.name, math.Round(1e4*value) / 1e4, text, row.advice})
			if row.name == "failed" || j.facts.constant == j.Data.Dim() {
				break // the other numbers follow from it
			}
		}
	}
	return found
}

func (j *judged) constantFeatures() (float64, string) {
	d, n := j.Data.Dim(), j.facts.constant
	share := float64(n) / float64(d)
	if share < constants {
		return 0, ""
	}
	of := fmt.Sprintf("%d of %d features have", n, d)
	if n == d {
		of = "all features have"
	}
	return share, of + " the same value in all training bags, so a model cannot learn from them"
}

func (j *judged) failed() (float64, string) {
	if d := j.report.Diverged; d != nil {
		return d.Loss, d.String()
	}
	return 0, ""
}

// tested returns the interval of the test accuracy, and the classes; nil without test bags with known labels.
func (j *judged) tested() (*measure.ConfidenceInterval, []measure.Class) {
	d := j.Detail
	if j.DetailOf != data.TestPart || d == nil || d.Accuracy == nil || d.Confusion == nil {
		return nil, nil
	}
	return d.Accuracy, d.Classes
}

// copies finds test bags that are training bags. It says how accurate the model is on the others.
func (j *judged) copies() (float64, string) {
	n := len(j.facts.copies)
	share := float64(n) / float64(max(j.facts.compared, 1))
	if n < 2 || share < copied {
		return 0, ""
	}
	first := slices.Min(slices.Collect(maps.Keys(j.facts.copies)))
	text := fmt.Sprintf("%d of %d test bags are nearly equal to a training bag, for example %s to %s", n, j.facts.compared,
		j.bagName(first), j.bagName(j.facts.copies[first]))
	if d := j.testedOnOwn(); d != nil {
		right, all := 0, 0
		for i, c := range d.Classes {
			right, all = right+d.Confusion[i][i], all+c.Support
		}
		text += fmt.Sprintf("; the accuracy on the other test bags is %.3f", float64(right)/float64(all))
	}
	return share, text
}

// testedOnOwn returns the details of the test bags with a known label that are no copies of training bags, nil if there
// are none.
func (j *judged) testedOnOwn() *measure.Detail {
	p := j.Predictions[data.TestPart]
	if in, _ := j.tested(); in == nil || p == nil {
		return nil
	}
	if len(j.facts.copies) == 0 {
		return j.Detail
	}
	var own measure.Predictions
	for i, bag := range j.Split.Test {
		if _, copied := j.facts.copies[bag]; !copied {
			own.Add(p.Row(i), j.Data.TrueMask(bag), j.Data.CandidateMask(bag))
		}
	}
	if own.KnownBags() == 0 {
		return nil
	}
	return own.Detail(j.Data.AllClassNames())
}

func (j *judged) leak() (float64, string) {
	if j.facts.leak < 0 {
		return 0, ""
	}
	name := fmt.Sprintf("feature %d", j.facts.leak+1)
	if j.Data.FeatureNames != nil {
		name = "the feature " + j.Data.FeatureNames[j.facts.leak]
	}
	return j.facts.share, fmt.Sprintf("%s alone separates the classes: bags with nearly the same value of it have the "+
		"same label (%.3f), and no other feature is nearly as good", name, j.facts.share)
}

// guessing does not count copies of training bags. If few bags are of other classes than the most frequent one, the
// finding is "test bags".
func (j *judged) guessing() (float64, string) {
	chance, others := j.chance()
	if chance < 0 || others < supported {
		return 0, ""
	}
	return chance, fmt.Sprintf("the test accuracy %.3f is not clearly better than always predicting the most frequent "+
		"class (%.3f)", *j.Measures.Accuracy(data.TestPart), chance)
}

// chance returns the share of the most frequent class of the test bags and the number of bags of other classes, if the
// model is not clearly better; else -1.
func (j *judged) chance() (share float64, others int) {
	d := j.testedOnOwn()
	if d == nil {
		return -1, 0
	}
	most, all := 0, 0
	for _, c := range d.Classes {
		most, all = max(most, c.Support), all+c.Support
	}
	share = float64(most) / float64(all)
	if d.Accuracy.Low > share || all < 2*len(d.Classes) {
		return -1, 0
	}
	return share, all - most
}

// noisyCandidates compares candidate sets with true labels, or else the predictions of training bags, which should be
// candidates more often than those of test bags are right.
func (j *judged) noisyCandidates() (float64, string) {
	if j.Data.Multi {
		return 0, ""
	}
	known, outside := 0, 0
	for _, part := range j.Split.Parts() {
		for _, bag := range part.Bags {
			if label, ok := j.Data.Label(bag); ok {
				known++
				outside += 1 - int(j.Data.CandidateMask(bag)[label])
			}
		}
	}
	if share := float64(outside) / float64(max(known, 1)); known > 0 && share >= noisy {
		return share, fmt.Sprintf("the candidates of %d of %s lack the true label", outside,
			diag.Count(known, "bag")+" with a true label")
	}
	tested, inside := j.Measures.Accuracy(data.TestPart),
		j.Measures[data.TrainPart].Get(measure.InsideCandidates)
	if tested == nil || inside == nil {
		return 0, ""
	}
	spread := math.Sqrt(*inside*(1-*inside)/float64(len(j.Split.Train)) +
		*tested*(1-*tested)/float64(j.labeled(data.TestPart)))
	if gap := *tested - *inside; gap >= max(missed, 3*spread) {
		return gap, fmt.Sprintf("only %.3f of the predictions for training bags are candidates, although %.3f of those for "+
			"test bags are right: many candidate sets seem to lack the true label", *inside, *tested)
	}
	return 0, ""
}

// labeled returns the number of bags of a part whose true label is known.
func (j *judged) labeled(part string) int {
	return j.Data.CountKnown(map[string][]int{data.ValidationPart: j.Split.Validation, data.TestPart: j.Split.Test}[part])
}

func (j *judged) contradictions() (float64, string) {
	list := j.facts.contradictions
	if len(list) == 0 {
		return 0, ""
	}
	var names []string
	for _, pair := range list[:min(len(list), 3)] {
		names = append(names, j.bagName(pair[0])+" and "+j.bagName(pair[1]))
	}
	return float64(len(list)), fmt.Sprintf("%s the same instances, or nearly, but labels that exclude each other, for "+
		"example %s", diag.CountForms(len(list), "pair of training bags has", "pairs of training bags have"),
		strings.Join(names, "; "))
}

// beaten compares the baseline with the model on the test bags that only one of them predicts right: a difference of
// more than 1.64 standard deviations would be rare by chance.
func (j *judged) beaten() (float64, string) {
	p := j.Predictions[data.TestPart]
	if j.baseline == nil || p == nil {
		return 0, ""
	}
	better, worse := 0.0, 0.0
	for i, bag := range j.Split.Test {
		label, known := j.Data.Label(bag)
		if right := measure.Argmax(p.Row(i)) == label; !known || right == j.baseline.right[bag] {
			continue
		} else if right {
			worse++
		} else {
			better++
		}
	}
	if better-worse <= 1.64*math.Sqrt(better+worse) {
		return 0, ""
	}
	return j.baseline.TestAccuracy, fmt.Sprintf("logistic regression on the mean, maximum and minimum of the instances "+
		"is better: %.3f of the test bags, the model has %.3f",
		j.baseline.TestAccuracy, *j.Measures.Accuracy(data.TestPart))
}

func (j *judged) overfit() (float64, string) {
	in, _ := j.tested()
	trained, tested := j.Measures.Accuracy(data.TrainPart), j.Measures.Accuracy(data.TestPart)
	if in == nil || trained == nil || *trained < in.High+overfit {
		return j.overfitCandidates()
	}
	return *trained - *tested, fmt.Sprintf("the training accuracy %.3f is far above the test accuracy %.3f", *trained,
		*tested)
}

// overfitCandidates compares how many predictions are candidates: a model can learn false candidates by heart, too.
func (j *judged) overfitCandidates() (float64, string) {
	trained, tested := j.Measures[data.TrainPart].Get(measure.InsideCandidates),
		j.Measures[data.TestPart].Get(measure.InsideCandidates)
	if trained == nil || tested == nil {
		return 0, ""
	}
	high := *tested + 1.96*math.Sqrt(*tested*(1-*tested)/float64(len(j.Split.Test)))
	if *trained < high+overfitSets {
		return 0, ""
	}
	return *trained - *tested, fmt.Sprintf("%.3f of the predictions for training bags are candidates, but only %.3f of "+
		"those for test bags", *trained, *tested)
}

func (j *judged) unpredicted() (float64, string) {
	_, classes := j.tested()
	var names []string
	for _, c := range classes {
		if c.Support >= supported && c.Predicted == 0 {
			names = append(names, c.Name)
		}
	}
	if names == nil {
		return 0, ""
	}
	of := fmt.Sprintf("of %d classes ", len(classes))
	return float64(len(names)), fmt.Sprintf("%s never predicted on the test bags: %s",
		diag.CountForms(len(names), of+"is", of+"are"), diag.Words(names))
}

// fallen uses validation bags, or else test bags: it chooses nothing.
func (j *judged) fallen() (float64, string) {
	if j.report.Best != nil {
		return 0, ""
	}
	part := data.TestPart
	if len(j.Split.Validation) > 0 {
		part = data.ValidationPart
	}
	best, last, epoch := 0.0, 0.0, 0
	for _, m := range j.report.Metrics {
		if v := m.Measures[part].Get(measure.Accuracy); v != nil {
			if last = *v; last > best {
				best, epoch = last, m.Epoch
			}
		}
	}
	mean := (best + last) / 2 // the best accuracy alone may be 1, which is not certain either
	if best-last < max(fallen, 3*math.Sqrt(mean*(1-mean)/float64(max(j.labeled(part), 1)))) {
		return 0, ""
	}
	return best - last, fmt.Sprintf("the %s accuracy was %.3f after epoch %d and is %.3f after the last one", part, best,
		epoch, last)
}

func (j *judged) flatAttention() (float64, string) {
	n := len(j.report.Attention)
	if n == 0 || !j.Program.Attends {
		return 0, ""
	}
	s := j.report.Attention[n-1].Test
	if len(s.Spreads) == 0 {
		s = j.report.Attention[n-1].Train
	}
	differing := slices.DeleteFunc(slices.Clone(s.Spreads), func(spread float32) bool { return spread <= flat })
	share := 1 - float64(len(differing))/float64(max(len(s.Spreads), 1))
	if len(s.Spreads) < supported || share < flatBags {
		return 0, ""
	}
	rank := ""
	if len(s.Positive) > 0 && len(s.Negative) > 0 {
		rank = fmt.Sprintf("; their order ranks positive instances with an AUROC of %.3f", auroc(s.Positive, s.Negative))
	}
	return share, fmt.Sprintf("in %.0f %% of the bags, all attention scores are nearly equal, so heatmaps show "+
		"little%s", 100*share, rank)
}

// auroc returns the probability that a positive score is above a negative one; equal ones count half.
func auroc(positive, negative []float32) float64 {
	sorted, sum := slices.Sorted(slices.Values(negative)), 0.0
	for _, s := range positive {
		below, _ := slices.BinarySearch(sorted, s)
		upTo, _ := slices.BinarySearch(sorted, math.Nextafter32(s, float32(math.Inf(1))))
		sum += float64(below+upTo) / 2
	}
	return sum / float64(len(positive)) / float64(len(negative))
}

func (j *judged) unmovedWeights() (float64, string) {
	if j.report.Weights == nil || j.Data.Multi || j.report.Fitted != nil {
		return 0, ""
	}
	way, bags := 0.0, 0
	for _, bag := range j.Split.Train {
		if n := len(j.Data.CandidateList(bag)); n > 1 {
			largest := float64(slices.Max(j.report.Weights[bag*j.Data.Classes : (bag+1)*j.Data.Classes]))
			way += (largest - 1/float64(n)) / (1 - 1/float64(n))
			bags++
		}
	}
	if bags == 0 || way/float64(bags) > unmoved {
		return 0, ""
	}
	return way / float64(bags), "the label weights of the candidates are still nearly equal"
}

// jumpingWeights counts how often the likeliest candidate changes in the last half of the epochs, in the training bags
// whose label weights were recorded.
func (j *judged) jumpingWeights() (float64, string) {
	if j.report.Fitted != nil {
		return 0, ""
	}
	changes, steps := 0, 0
	for _, t := range j.report.Trajectories {
		for e := max(1, len(t.Weights)/2); e < len(t.Weights); e++ {
			steps++
			now, before := t.Weights[e], t.Weights[e-1]
			if top := measure.Argmax(now); top != measure.Argmax(before) && now[top]-before[top] >= leap {
				changes++
			}
		}
	}
	share := float64(changes) / float64(max(steps, 1))
	if steps < 10*supported || share < jumping {
		return 0, ""
	}
	return share, fmt.Sprintf("the likeliest candidate of a training bag still changes in %.0f %% of the last %d epochs, "+
		"on average", 100*share, steps/len(j.report.Trajectories))
}

// rejectedCandidates finds training bags whose candidates the model rejects, if it is sure in general, and if it
// rejects at least about a quarter as many as of the test bags: a model that has learned its training bags makes far
// fewer errors there, but wrong candidate sets may be in both parts.
func (j *judged) rejectedCandidates() (float64, string) {
	p := j.Predictions[data.TrainPart]
	if p == nil || j.Data.Multi {
		return 0, ""
	}
	inside, names := 0, []string(nil)
	for i, bag := range j.Split.Train {
		if j.Data.CandidateMask(bag)[measure.Argmax(p.Row(i))] == 1 {
			inside++
		}
		if j.rejects(p.Row(i), bag) {
			names = append(names, j.bagName(bag))
		}
	}
	if names == nil || float64(inside) < confident*float64(len(j.Split.Train)) {
		return 0, ""
	}
	if p := j.Predictions[data.TestPart]; p != nil {
		wrong := 0
		for i, bag := range j.Split.Test {
			if j.rejects(p.Row(i), bag) {
				wrong++
			}
		}
		expected := float64(wrong) / float64(len(j.Split.Test)) * float64(len(j.Split.Train)) / 4
		if float64(len(names)) <= expected+math.Sqrt(expected) {
			return 0, ""
		}
	}
	return float64(len(names)), fmt.Sprintf("the candidate sets of %s seem wrong, because the model gives all "+
		"candidates together less than %g: %s",
		diag.Count(len(names), "training bag"), doubted, diag.Words(names))
}

// rejects reports whether the probabilities of a bag are near 1 for a class that is neither its label nor a candidate.
func (j *judged) rejects(probabilities []float32, bag int) bool {
	mass := 0.0
	for _, class := range j.Data.CandidateList(bag) {
		mass += float64(probabilities[class])
	}
	top := measure.Argmax(probabilities)
	label, known := j.Data.Label(bag)
	return mass < doubted && probabilities[top] > 1-2*doubted && !(known && label == top)
}

func (j *judged) bagName(bag int) string {
	if j.Data.BagNames != nil {
		return j.Data.BagNames[bag]
	}
	return strconv.Itoa(bag + 1)
}

func (j *judged) miscalibrated() (float64, string) {
	in, _ := j.tested()
	ece := j.Measures[data.TestPart].Get(measure.ECE)
	if in == nil || ece == nil || *ece < miscalibrated || j.Program.Warned(compile.LowProbabilities) {
		return 0, ""
	}
	return *ece, fmt.Sprintf("the probabilities are badly calibrated: they differ from the shares of right predictions "+
		"by %.3f on average (ECE)", *ece)
}

func (j *judged) disagreement() (float64, string) {
	v, t := j.Measures.Accuracy(data.ValidationPart), j.Measures.Accuracy(data.TestPart)
	if v == nil || t == nil {
		return 0, ""
	}
	mean := (*v + *t) / 2
	spread := math.Sqrt(mean * (1 - mean) * (1/float64(j.labeled(data.ValidationPart)) +
		1/float64(j.labeled(data.TestPart))))
	gap := math.Abs(*v - *t)
	if gap < max(disagreeing, 3*spread) {
		return 0, ""
	}
	return gap, fmt.Sprintf("the validation accuracy %.3f and the test accuracy %.3f disagree", *v, *t)
}

func (j *judged) rareClasses() (float64, string) {
	counts := make([]int, j.Data.Classes)
	for _, bag := range j.Split.Train {
		if label, known := j.Data.Label(bag); known {
			counts[label]++
			continue
		}
		for _, class := range j.Data.CandidateList(bag) {
			counts[class]++
		}
	}
	var names []string
	fewest := rare
	for class, n := range counts {
		if n > 0 && n < rare {
			names, fewest = append(names, j.Data.ClassName(class)), min(fewest, n)
		}
	}
	if names == nil {
		return 0, ""
	}
	return float64(fewest), fmt.Sprintf("%s fewer than %d training bags: %s",
		diag.CountForms(len(names), "class has", "classes have"), rare, diag.Words(names))
}

func (j *judged) uncertain() (float64, string) {
	in, _ := j.tested()
	if in == nil {
		return 0, ""
	}
	if chance, others := j.chance(); chance >= 0 && others < supported {
		return float64(others), fmt.Sprintf("only %s of another class than the most frequent one: too few to tell whether "+
			"the model is better than always predicting that class (%.3f)",
			diag.CountForms(others, "test bag is", "test bags are"), chance)
	}
	if in.High-in.Low < uncertain {
		return 0, ""
	}
	return in.High - in.Low, fmt.Sprintf("%s are too few to tell: the accuracy lies between %.2f and %.2f (95 %%)",
		diag.Count(j.labeled(data.TestPart), "test bag")+j.withLabel(), in.Low, in.High)
}

// withLabel returns words for the test bags that count, if some have no true label.
func (j *judged) withLabel() string {
	if j.labeled(data.TestPart) == len(j.Split.Test) {
		return ""
	}
	return " with a true label"
}
