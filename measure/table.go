package measure

import (
	"math"
	"slices"
	"strings"
)

// Measure is a row of the table of measures.
type Measure struct {
	Name    string // in files, flags and specs
	Title   string // in tables and messages
	Lower   bool   // whether lower values are better
	Range   string
	Max     float64 // end of the range
	Formula string  // in words, for the documentation
	Needs   string  // why the measure can be undefined

	of func(*counts) (value float64, defined bool)
}

// Names of measures that the code refers to.
const (
	Accuracy = "accuracy"
	LogLoss  = "log_loss"
	ECE      = "ece"

	InsideCandidates = "inside_candidates"
)

// Table lists all measures.
var Table = []Measure{
	{
		Name: Accuracy, Title: "accuracy", Range: "0 to 1", Max: 1,
		Formula: "share of bags whose most probable class is the true class",
		Needs:   "a known label",
		of:      func(t *counts) (float64, bool) { return ratio(total(t.hit), t.known) },
	},
	{
		Name: "balanced_accuracy", Title: "balanced accuracy", Range: "0 to 1", Max: 1,
		Formula: "mean over the classes of the recall: the share of the bags of a class that are predicted right",
		Needs:   "a known label; classes without bags are left out",
		of:      func(t *counts) (float64, bool) { return t.mean(t.recall) },
	},
	{
		Name: "macro_f1", Title: "macro F1", Range: "0 to 1", Max: 1,
		Formula: "mean over the classes of F1 = 2 · hits / (bags of the class + bags predicted as the class)",
		Needs:   "a known label; classes without bags that are never predicted are left out",
		of:      func(t *counts) (float64, bool) { return t.mean(t.f1) },
	},
	{
		Name: "auroc", Title: "AUROC", Range: "0 to 1", Max: 1,
		Formula: "mean over the classes of the area under the ROC curve of the class against the rest: the probability that a bag of the class gets a higher probability of it than another bag; equal ones count half",
		Needs:   "bags of at least two classes; classes without bags are left out",
		of:      func(t *counts) (float64, bool) { return t.mean(t.auroc) },
	},
	{
		Name: LogLoss, Title: "log loss", Lower: true, Range: "0 to 23 ln 2", Max: 23 * math.Ln2,
		Formula: "mean of −ln p(true class), where p is at least 2⁻²³",
		Needs:   "a known label",
		of:      func(t *counts) (float64, bool) { return t.probabilistic(t.logLoss) },
	},
	{
		Name: "brier", Title: "Brier score", Lower: true, Range: "0 to 2", Max: 2,
		Formula: "mean of the sum over the classes of (p(class) − 1 if the class is true, − 0 otherwise)²",
		Needs:   "a known label",
		of:      func(t *counts) (float64, bool) { return t.probabilistic(t.brier) },
	},
	{
		Name: ECE, Title: "ECE", Lower: true, Range: "0 to 1", Max: 1,
		Formula: "expected calibration error: bags are divided into 15 bins of equal width by the probability of the predicted class; the mean over the bags of the difference between the accuracy and the mean probability of their bin",
		Needs:   "a known label",
		of:      func(t *counts) (float64, bool) { return t.probabilistic(t.calibrationError()) },
	},
	{
		Name: "top2", Title: "top-2 accuracy", Range: "0 to 1", Max: 1,
		Formula: "share of bags whose true class is one of the two most probable classes",
		Needs:   "a known label and at least three classes",
		of: func(t *counts) (float64, bool) {
			v, ok := ratio(t.second, t.known)
			return v, ok && t.p.Classes > 2
		},
	},
	{
		Name: InsideCandidates, Title: "predictions inside the candidate set", Range: "0 to 1", Max: 1,
		Formula: "share of bags whose most probable class is a candidate label",
		Needs:   "a candidate set that excludes a class; true labels are not needed",
		of:      func(t *counts) (float64, bool) { return ratio(t.inside, t.limited) },
	},
}

// probabilistic divides a sum over the labelled bags by their number. The result is not
// defined if a probability is not finite.
func (t *counts) probabilistic(sum float64) (float64, bool) {
	v, ok := ratio(sum, t.known)
	return v, ok && t.finite
}

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

// best names the direction.
func (m *Measure) best() string {
	if m.Lower {
		return "lower"
	}
	return "higher"
}

// reference returns the table as Markdown.
func reference() string {
	var b strings.Builder
	b.WriteString("| name | definition | range | better | undefined without |\n|---|---|---|---|---|\n")
	for _, m := range Table {
		b.WriteString("| `" + m.Name + "` | " + m.Formula + " | " + m.Range + " | " + m.best() + " | " + m.Needs + " |\n")
	}
	return b.String()
}
