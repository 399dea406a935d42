// Classes, confusion matrix and intervals.

package measure

import "math"

// Detail is everything that can be said about the predictions of bags.
type Detail struct {
	Accuracy    *ConfidenceInterval `json:"accuracy_interval"` // nil without known labels
	Classes     []Class             `json:"classes"`
	Confusion   [][]int             `json:"confusion"`   // [true][predicted] bags; nil if a bag has any number of labels
	Reliability []Bin               `json:"reliability"` // nil without known labels, or if a bag has any number of labels
}

// Class is a row of the table of classes. Values that are not defined are nil: the recall
// of a class without bags, the precision of a class that is never predicted.
type Class struct {
	Name              string              `json:"class"`
	Support           int                 `json:"support"`   // bags of the class
	Predicted         int                 `json:"predicted"` // bags predicted as the class
	Precision         *float64            `json:"precision"`
	PrecisionInterval *ConfidenceInterval `json:"precision_interval"`
	Recall            *float64            `json:"recall"`
	RecallInterval    *ConfidenceInterval `json:"recall_interval"`
	F1                *float64            `json:"f1"`
	AUROC             *float64            `json:"auroc"` // of the class against the rest
	// AveragePrecision is only computed if a bag has any number of labels.
	AveragePrecision *float64 `json:"average_precision,omitempty"`
}

// ConfidenceInterval is a 95 % confidence interval of a share by Wilson's method.
type ConfidenceInterval struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// Detail computes the table of classes, the confusion matrix and the reliability diagram.
// classes are the names of the classes.
func (p *Predictions) Detail(classes []string) *Detail {
	t := p.count()
	d := &Detail{Accuracy: wilson(t.right, t.known), Reliability: t.reliability(),
		Classes: []Class{}}
	for c := range p.Classes {
		d.Classes = append(d.Classes, Class{
			Name: classes[c], Support: t.support[c], Predicted: t.predicted[c],
			Precision: defined(t.precision(c)), PrecisionInterval: wilson(t.hit[c], t.predicted[c]),
			Recall: defined(t.recall(c)), RecallInterval: wilson(t.hit[c], t.support[c]),
			F1: defined(t.f1(c)), AUROC: defined(t.auroc(c)),
		})
		if p.multi() {
			d.Classes[c].AveragePrecision = defined(t.averagePrecision(c))
		}
	}
	if p.multi() {
		return d
	}
	d.Confusion = make([][]int, p.Classes)
	for c := range d.Confusion {
		d.Confusion[c] = make([]int, p.Classes)
	}
	for i := range p.Bags() {
		if label := p.label(i); label >= 0 && t.known > 0 {
			d.Confusion[label][Argmax(p.Row(i))]++
		}
	}
	return d
}

// defined returns nil for a value that is not defined.
func defined(v float64, ok bool) *float64 {
	if !ok {
		return nil
	}
	return &v
}

// wilson returns the confidence interval of the share of n that hits are, or nil for n = 0:
// with z the 97.5 % quantile of the normal distribution, the shares that are z standard
// errors or less from the observed one.
func wilson(hits, n int) *ConfidenceInterval {
	const z = 1.959963984540054
	if n == 0 {
		return nil
	}
	count := float64(n)
	share := float64(hits) / count
	scale := 1 + z*z/count
	center := (share + z*z/(2*count)) / scale
	half := z / scale * math.Sqrt(share*(1-share)/count+z*z/(4*count*count))
	interval := &ConfidenceInterval{max(0, center-half), min(1, center+half)}
	if hits == 0 {
		interval.Low = 0
	}
	if hits == n {
		interval.High = 1
	}
	return interval
}
