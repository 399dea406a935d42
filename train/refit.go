package train

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/internal/diag"
)

// RefitFolder is the folder below that of a run with the checkpoints of its second training.
const RefitFolder = "refit"

// WithRefit trains trials as by does. Trials whose spec has train.refit are then trained
// again from the start, on their training and validation bags and for the number of epochs
// that train.best chose; their outcome is that of the second training with the metrics of
// the first.
func WithRefit(ctx context.Context, by Trainer, trials []*Trial, o Options, done func(i int, out Outcome)) {
	if !slices.ContainsFunc(trials, (*Trial).refits) {
		by.Train(ctx, trials, o, done)
		return
	}
	first := make([]*Report, len(trials))
	by.Train(ctx, trials, o, func(i int, out Outcome) {
		if out.Err != nil || !trials[i].refits() {
			done(i, out)
			return
		}
		first[i] = out.Report
	})
	var again []*Trial
	var places []int
	for i, report := range first {
		if report != nil {
			again, places = append(again, trials[i].refit(report.Best.Epoch)), append(places, i)
		}
	}
	if len(again) == 0 {
		return
	}
	by.Train(ctx, again, Options{Resume: o.Resume, AtATime: o.AtATime, Observer: refitObserver(o, again)}, func(n int, out Outcome) {
		if i := places[n]; out.Err == nil {
			out.Report.takeSearch(first[i])
		}
		done(places[n], out)
	})
}

// refit is the second training of a trial.
func (t *Trial) refit(epochs int) *Trial {
	again := *t
	again.Until, again.Log = epochs, ""
	if t.Dir != "" {
		again.Dir = filepath.Join(t.Dir, RefitFolder)
	}
	bags := slices.Concat(t.Split.Train, t.Split.Validation)
	slices.Sort(bags)
	again.Split = &data.Split{Train: bags, Test: t.Split.Test, Source: t.Split.Source}
	return &again
}

// takeSearch adds what the first training of a trial found to the report of the second.
func (r *Report) takeSearch(search *Report) {
	best := *search.Best
	best.Refit = true
	r.Best, r.Metrics = &best, search.Metrics
	r.TrainBags, r.ValidationBags = search.TrainBags, search.ValidationBags
	r.Resumed, r.Seconds = search.Resumed, r.Seconds+search.Seconds
}

// refitObserver follows the second trainings: that of one trial in full, those of several
// by a note.
func refitObserver(o Options, trials []*Trial) Observer {
	to := o.ObserverOrSilent()
	if len(trials) > 1 {
		to.Note(fmt.Sprintf("training %s again on training and validation bags, each for the epochs that train.best chose", diag.Count(len(trials), "run")))
		return notes{to: to}
	}
	to.Note(fmt.Sprintf("training again on training and validation bags for %s", diag.Count(trials[0].Until, "epoch")))
	return to
}

// notes passes on notes and warnings alone.
type notes struct {
	Silent
	to Observer
}

func (n notes) Note(text string) { n.to.Note(text) }
func (n notes) Warn(text string) { n.to.Warn(text) }
