// The table of the terms of the loss.

package language

import (
	"slices"

	"github.com/miplc/miplc/language/schema"
)

// weightRow is the only argument of a named term of the loss.
func weightRow(value, doc string) []schema.Row {
	return []schema.Row{{Name: "weight", Type: schema.Real, Default: value, Main: true, In: schema.AtLeast(0), Doc: doc}}
}

// LossTerms is the table of the terms of the loss. Package compile defines what they compute. The first term for bags
// with one label is the one that messages name. The first for bags with several also replaces inherited ones for one.
var LossTerms = []Kind{
	{Name: "disambiguation", labels: oneLabel, Reads: []string{"w", "logp"}, weighsClasses: true,
		Doc:  "Cross-entropy weighted with the label weights (Eq. 5), mean over the bags.",
		args: weightRow("1", "Factor of the term.")},
	{Name: "binary_cross_entropy", labels: severalLabels, Reads: []string{"S", "p"},
		weighsClasses: true,
		Doc:           "Binary cross-entropy of each class, mean over classes and bags; for `data.labels: multi`.",
		args:          weightRow("1", "Factor of the term.")},
	{Name: "attention", Reads: []string{"a"},
		Doc:  "Attention loss (Eq. 4): -sum of a log a over the instances, mean over the bags.",
		args: weightRow("0.001", "Factor of the term, lambda_a of Eq. 8.")},
	{Name: "equation", Doc: "A custom term.",
		args: []schema.Row{
			{Name: "name", Required: true, Doc: "Name of the term in reports."},
			{Name: "value", Type: schema.Expression, Required: true, Doc: "Equation whose value is a single number."},
			{Name: "weight", Type: schema.Real, Default: "1", In: schema.AtLeast(0), Doc: "Factor of the term."},
		}},
}

// labelCount is the number of labels of the bags of a loss term.
type labelCount uint8

const (
	anyLabels labelCount = iota
	oneLabel
	severalLabels
)

// Fits reports whether a loss term is for bags with several labels, or with one.
func (k Kind) Fits(several bool) bool {
	return k.labels == anyLabels || (k.labels == severalLabels) == several
}

// Row returns the row of the term.
func (l *Loss) Row() *Kind { return schema.Find(LossTerms, l.Kind.V) }

// classTerm returns the term of the classes for bags with one label or with several.
func classTerm(several bool) string {
	i := slices.IndexFunc(LossTerms, func(k Kind) bool { return k.labels != anyLabels && k.Fits(several) })
	return LossTerms[i].Name
}

// classWeighted lists the terms with class weights.
func classWeighted() (names []string) {
	for _, k := range LossTerms {
		if k.weighsClasses {
			names = append(names, "`"+k.Name+"`")
		}
	}
	return names
}
