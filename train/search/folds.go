// The result of a trial that was trained on several folds: the means over the folds.

package search

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/data/measure"
	"github.com/miplc/miplc/train"
)

// OnFolds returns the trainings of a trial on folds, which are splits of the same bags. A single split gives the trial
// itself on this split.
func OnFolds(t *train.Trial, folds []*data.Split) []*train.Trial {
	list := make([]*train.Trial, len(folds))
	for i, split := range folds {
		one := *t
		one.Split = split
		if len(folds) > 1 {
			one.Name = fmt.Sprintf("%s-fold-%d", t.Name, i+1)
			if t.Dir != "" {
				one.Dir = fmt.Sprintf("%s-fold-%d", t.Dir, i+1)
			}
		}
		list[i] = &one
	}
	return list
}

// meanOf returns the result of a trial from those of its trainings. Its value is that of the last rung that all of them
// reached.
func meanOf(folds []TrialResult) TrialResult {
	if len(folds) == 1 {
		return folds[0]
	}
	mean := TrialResult{Setting: folds[0].Setting, Parameters: folds[0].Parameters}
	reached, furthest := len(folds[0].Rungs), 0
	var accuracies []float64
	for i := range folds {
		f := &folds[i]
		if f.Error != "" && mean.Error == "" {
			mean.Error = fmt.Sprintf("fold %d of %d: %s", i+1, len(folds), f.Error)
		}
		mean.Seconds, mean.Epochs = mean.Seconds+f.Seconds, max(mean.Epochs, f.Epochs)
		mean.Diverged = mean.Diverged || f.Diverged
		reached, furthest = min(reached, len(f.Rungs)), max(furthest, len(f.Rungs))
		if f.Accuracy != nil {
			accuracies = append(accuracies, *f.Accuracy)
		}
	}
	for level := range reached {
		rung := Rung{}
		mean.Folds = nil
		for i := range folds {
			r := &folds[i].Rungs[level]
			rung.Epoch, rung.Diverged = max(rung.Epoch, r.Epoch), rung.Diverged || r.Diverged
			mean.Folds = append(mean.Folds, r.Value)
		}
		rung.Value = average(mean.Folds)
		mean.Rungs = append(mean.Rungs, rung)
	}
	if reached > 0 {
		last := mean.Rungs[reached-1]
		mean.Value, mean.Curve = &last.Value, meanCurve(folds, last.Epoch)
	}
	if reached == furthest && len(accuracies) == len(folds) {
		accuracy := average(accuracies)
		mean.Accuracy = &accuracy
	}
	return mean
}

// average returns the mean of values, rounded to 12 digits: trials whose values are the same in another order are then
// equal, so that the number of parameters decides.
func average(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	mean := sum / float64(len(values))
	if rounded, err := strconv.ParseFloat(strconv.FormatFloat(mean, 'g', 12, 64), 64); err == nil {
		return rounded
	}
	return mean
}

// meanCurve returns the mean of the curves of folds up to an epoch.
func meanCurve(folds []TrialResult, last int) (mean []CurvePoint) {
	var epochs []int
	for i := range folds {
		for _, p := range folds[i].Curve {
			epochs = append(epochs, min(p.Epoch, last))
		}
	}
	slices.Sort(epochs)
	for _, epoch := range slices.Compact(epochs) {
		var values []float64
		for i := range folds {
			if v, found := valueAt(folds[i].Curve, epoch); found {
				values = append(values, v)
			}
		}
		if len(values) == len(folds) {
			mean = append(mean, CurvePoint{epoch, average(values)})
		}
	}
	return mean
}

// valueAt returns the value of a curve at an epoch: the last one before it if there is none, because the training
// stopped early.
func valueAt(curve []CurvePoint, epoch int) (v float64, found bool) {
	for _, p := range curve {
		if p.Epoch <= epoch {
			v, found = p.Value, true
		}
	}
	return v, found
}

// Axis returns the label of the values of trials in figures.
func Axis(by *measure.Measure, folds int) string {
	if folds > 0 {
		return fmt.Sprintf("%s of %d folds", by.Title, folds)
	}
	return by.Title + " of held-out bags"
}

// Columns returns the names of the columns of Cells. prefix is that of the measures, of which by chooses.
func Columns(prefix, by string, folds int) []string {
	names := []string{"epochs", "rungs", prefix + by}
	if by != measure.Accuracy {
		names = append(names, prefix+measure.Accuracy)
	}
	for i := range folds {
		names = append(names, fmt.Sprint("fold_", i+1))
	}
	return append(names, "parameters", "seconds", "diverged", "error")
}

// Cells returns a line of a table of trials. Values that do not exist, such as those of a trial that failed, are empty.
func (r *TrialResult) Cells(by string, folds int) []string {
	number := func(v *float64) string {
		if v == nil {
			return ""
		}
		return strconv.FormatFloat(*v, 'g', -1, 64)
	}
	cells := []string{strconv.Itoa(r.Epochs), strconv.Itoa(len(r.Rungs)), number(r.Value)}
	if by != measure.Accuracy {
		cells = append(cells, number(r.Accuracy))
	}
	values := make([]string, folds)
	for i := range min(folds, len(r.Folds)) {
		values[i] = number(&r.Folds[i])
	}
	return slices.Concat(cells, values, []string{strconv.Itoa(r.Parameters), number(&r.Seconds),
		strconv.FormatBool(r.Diverged), r.Error})
}
