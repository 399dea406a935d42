// The table of measures.

package measure

import (
	"math"
	"slices"
)

// Measure is a row of the table of measures.
type Measure struct {
	Name      string // in files, flags and specs
	Title     string // in tables and messages
	Lower     bool   // whether lower values are better
	Range     string
	Max       float64 // end of the range
	Formula   string  // in words, for the documentation
	Needs     string  // why the measure can be undefined
	Group     bool    // whether it is of groups, see Predictions.ByGroup, instead of bags
	InPredict bool    // miplc predict prints it after the accuracy, also without --measures
	InTrain   bool    // miplc train prints it after the accuracy if bags have several labels

	labels       labelling
	ofCandidates bool // needs candidate sets, but no true labels
	of           func(*counts) (value float64, defined bool)
}

// labelling is the number of labels of a bag that a measure is for.
type labelling uint8

const (
	anyLabels labelling = iota
	oneLabel
	multiLabels
)

// Fits reports whether the measure is for bags with any number of labels, if multi is true, or for
// bags with one label.
func (m *Measure) Fits(multi bool) bool {
	return m.labels == anyLabels || multi == (m.labels == multiLabels)
}

// NeedsLabels reports whether the measure needs bags with true labels. The others need candidate sets.
func (m *Measure) NeedsLabels() bool { return !m.ofCandidates }

// Requires returns what the measure needs to be defined.
func (m *Measure) Requires() string {
	switch m.labels {
	case oneLabel:
		return "one label per bag, and " + m.Needs
	case multiLabels:
		return "data.labels: multi, and " + m.Needs
	}
	return m.Needs
}

// Names of measures that the code refers to.
const (
	Accuracy = "accuracy"
	LogLoss  = "log_loss"
	ECE      = "ece"

	InsideCandidates = "inside_candidates"
)

// Table lists all measures: those of bags, then the same of groups.
var Table = withGroups([]Measure{
	{
		Name: Accuracy, Title: "accuracy", Range: "0 to 1", Max: 1,
		Formula: "share of bags whose most probable class is the true class; with several labels per bag: whose predicted " +
			"set of classes equals the set of true labels (subset accuracy)",
		Needs: "a known label",
		of:    func(t *counts) (float64, bool) { return ratio(t.right, t.known) },
	},
	{
		Name: "balanced_accuracy", Title: "balanced accuracy", Range: "0 to 1", Max: 1,
		InPredict: true,
		labels:    oneLabel,
		Formula: "mean over the classes with bags of the recall, the share of the bags of the class that are predicted as " +
			"the class",
		Needs: "a known label",
		of:    func(t *counts) (float64, bool) { return t.mean(t.recall) },
	},
	{
		Name: "macro_f1", Title: "macro F1", Range: "0 to 1", Max: 1,
		InPredict: true, InTrain: true,
		Formula: "mean over the classes with bags or predictions of F1 = 2 · correct / (bags of the class + bags " +
			"predicted as the class), where correct is the number of bags of the class that are predicted as the class",
		Needs: "a known label",
		of:    func(t *counts) (float64, bool) { return t.mean(t.f1) },
	},
	{
		Name: "micro_f1", Title: "micro F1", Range: "0 to 1", Max: 1,
		InPredict: true,
		labels:    multiLabels,
		Formula: "F1 with the counts of all classes added: 2 · correctly predicted labels / (true labels + predicted " +
			"labels)",
		Needs: "a known or predicted label",
		of: func(t *counts) (float64, bool) {
			return ratio(2*total(t.hit), total(t.support)+total(t.predicted))
		},
	},
	{
		Name: "hamming_loss", Title: "Hamming loss", Lower: true, Range: "0 to 1", Max: 1,
		InPredict: true, InTrain: true,
		labels:  multiLabels,
		Formula: "share of wrong decisions, one decision for each bag and class",
		Needs:   "known labels",
		of: func(t *counts) (float64, bool) {
			return ratio(total(t.support)+total(t.predicted)-2*total(t.hit), t.known*t.p.Classes)
		},
	},
	{
		Name: "mean_average_precision", Title: "mean average precision", Range: "0 to 1", Max: 1,
		InPredict: true,
		labels:    multiLabels,
		Formula: "mean over the classes with bags of the average precision. Average precision of a class: for each bag " +
			"with the label, take all bags with at least its p(class), and compute the share of them that have the label; " +
			"average these shares",
		Needs: "a known label",
		of:    func(t *counts) (float64, bool) { return t.mean(t.averagePrecision) },
	},
	{
		Name: "auroc", Title: "AUROC", Range: "0 to 1", Max: 1,
		InPredict: true,
		Formula: "mean over the classes with bags of the area under the ROC curve of the class against the rest: the " +
			"share of pairs of a bag of the class and another bag in which p(class) is higher for the bag of the class; " +
			"equal values count half",
		Needs: "a class that some bags have and others do not",
		of:    func(t *counts) (float64, bool) { return t.mean(t.auroc) },
	},
	{
		Name: LogLoss, Title: "log loss", Lower: true, Range: "0 to 23 ln 2", Max: 23 * math.Ln2,
		InPredict: true,
		Formula: "mean of −ln p(true class); with several labels per bag: mean over bags and classes of −ln p if the bag " +
			"has the label, else −ln(1 − p) (binary cross-entropy). In the logarithm, values below 2⁻²³ count as 2⁻²³, so " +
			"that the measure is at most 23 ln 2, about 15.9",
		Needs: "a known label",
		of:    func(t *counts) (float64, bool) { return ratio(t.logLoss, t.known) },
	},
	{
		Name: "brier", Title: "Brier score", Lower: true, Range: "0 to 2", Max: 2,
		labels: oneLabel,
		Formula: "mean over the bags of the sum over the classes of (p(class) − y)², where y is 1 for the true class and " +
			"0 for the others",
		Needs: "a known label",
		of:    func(t *counts) (float64, bool) { return ratio(t.brier, t.known) },
	},
	{
		Name: ECE, Title: "ECE", Lower: true, Range: "0 to 1", Max: 1,
		InPredict: true,
		labels:    oneLabel,
		Formula: "expected calibration error: bags are divided into 15 bins of equal width by the probability of the " +
			"predicted class; the mean, weighted by the number of bags, of the absolute difference between accuracy and mean " +
			"probability of a bin",
		Needs: "a known label",
		of:    func(t *counts) (float64, bool) { return ratio(t.calibrationError(), t.known) },
	},
	{
		Name: "top2", Title: "top-2 accuracy", Range: "0 to 1", Max: 1,
		labels:  oneLabel,
		Formula: "share of bags whose true class is one of the two most probable classes",
		Needs:   "a known label and at least three classes",
		of: func(t *counts) (float64, bool) {
			v, ok := ratio(t.second, t.known)
			return v, ok && t.p.Classes > 2
		},
	},
	{
		Name: InsideCandidates, Title: "predictions inside the candidate set", Range: "0 to 1", Max: 1,
		labels: oneLabel, ofCandidates: true,
		Formula: "share of bags whose most probable class is a candidate label, with or without a known label; bags of " +
			"which every class is a candidate are left out",
		Needs: "a candidate set that excludes a class",
		of:    func(t *counts) (float64, bool) { return ratio(t.inside, t.limited) },
	},
})

// Find returns the measure of a name, or nil.
func Find(name string) *Measure {
	if i := slices.IndexFunc(Table, func(m Measure) bool { return m.Name == name }); i >= 0 {
		return &Table[i]
	}
	return nil
}

// Names lists the names of all measures.
func Names() []string {
	list := make([]string, len(Table))
	for i, m := range Table {
		list[i] = m.Name
	}
	return list
}

// BagNames lists the names of the measures that are not of groups.
func BagNames() []string {
	return slices.DeleteFunc(Names(), func(name string) bool { return Find(name).Group })
}
