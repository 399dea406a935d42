// Training again on training and validation bags.

package train

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/internal/diag"
)

// RefitFolder is the subfolder of a run for the checkpoints of its second training.
const RefitFolder = "refit"

// WithRefit trains trials by a trainer. Those whose spec has train.refit are trained again from the start, on their
// training and validation bags and for the number of epochs that train.best chose. Their outcome is that of the second
// training with the metrics of the first.
func WithRefit(ctx context.Context, by Trainer, trials []*Trial, o Options, done func(i int, out Outcome)) {
	first, second := make([]*Report, len(trials)), make([]*Trial, len(trials))
	by.Train(ctx, trials, o, func(i int, out Outcome) {
		if out.Err != nil || !trials[i].refits() {
			done(i, out)
			return
		}
		first[i], second[i] = out.Report, trials[i].refit(out.Report)
	})
	var again []int
	for i, t := range second {
		if t != nil {
			again = append(again, i)
		}
	}
	if len(again) == 0 {
		return
	}
	o.Observer = refitObserver(o, subset(second, again))
	TrainSubset(ctx, by, second, again, o, func(i int, out Outcome) {
		if out.Err == nil {
			out.Report = out.Report.withSearch(first[i])
		}
		done(i, out)
	})
}

// refit returns the second training of a trial, given the report of the first. Learning rates
// that followed the validation bags, of which the second has none, are those of the first.
func (t *Trial) refit(search *Report) *Trial {
	again := *t
	again.Until, again.Log = search.Best.Epoch, ""
	if t.Program.Spec.Train.DecayMeasure.V != "" {
		for _, m := range search.Metrics[:again.Until] {
			again.Rates = append(again.Rates, m.LR)
		}
	}
	if t.Dir != "" {
		again.Dir = filepath.Join(t.Dir, RefitFolder)
	}
	bags := slices.Concat(t.Split.Train, t.Split.Validation)
	slices.Sort(bags)
	again.Split = &data.Split{Train: bags, Test: t.Split.Test, Source: t.Split.Source}
	return &again
}

// withSearch returns the report of the second training of a trial, with the choice and the metrics of the first.
func (r *Report) withSearch(search *Report) *Report {
	both, best := *r, *search.Best
	best.Refit = true
	both.Best, both.Metrics = &best, search.Metrics
	both.Resumed, both.Seconds = search.Resumed, r.Seconds+search.Seconds
	return &both
}

// refitObserver returns the observer of second trainings. For several trials it passes on only
// notes and warnings.
func refitObserver(o Options, trials []*Trial) Observer {
	to := o.ObserverOrSilent()
	if len(trials) > 1 {
		to.Note(fmt.Sprintf("training %s again on training and validation bags, each for the epochs that train.best chose",
			diag.Count(len(trials), "run")))
		return NotesOf(to)
	}
	to.Note(fmt.Sprintf("training again on training and validation bags for %s", diag.Count(trials[0].Until, "epoch")))
	return to
}
