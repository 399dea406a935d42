// miplc train --search: its trials, its progress and how its results are printed.

package cli

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/miplc/miplc/cmd/miplc/internal/console"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/runs"
	"github.com/miplc/miplc/train"
	"github.com/miplc/miplc/train/search"
)

// search searches for settings among trials, trains the best ones and prints the results.
func (o *trainOptions) search(ctx context.Context, trials []*train.Trial) error {
	task := runs.SearchTask{Task: o.Task, SearchPlan: *o.plan, Budget: o.Budget}
	switch {
	case o.Events:
		events := console.NewEvents(o.Console)
		task.Observer, task.Progress = events, func(p runs.SearchProgress) { events.Write("search", p) }
	case !o.Console.JSON:
		line, bar := console.NewLine(o.Console.Err, o.Console.Terminal), console.NewReporter(o.Console.Err,
			o.Console.Terminal)
		defer bar.End()
		line.Note(fmt.Sprintf("%s of %s", diag.Count(len(trials), "trial"), o.plan.Specs[0].Name.V))
		task.Observer, task.Progress = bar, func(p runs.SearchProgress) { showSearch(line, p) }
	}
	summary, found, err := runs.Search(ctx, trials, task)
	if err != nil {
		return o.explain(err)
	}
	return o.Console.Result(struct {
		*runs.Summary
		Search *runs.SearchResults `json:"search"`
	}{summary, found}, func(w io.Writer) {
		printSearch(w, found)
		printSummary(w, o.Dir, summary)
	})
}

// searchSpecs sets plan to the search of the spec and returns the specs of its trials.
func (o *trainOptions) searchSpecs() ([]*language.Spec, error) {
	if o.Trials > 0 {
		o.Set = append(o.Set, fmt.Sprintf("search.trials=%d", o.Trials))
	}
	base, err := o.load(o.Set)
	if err != nil {
		return nil, err
	}
	list, settings, err := base.TrialSpecs()
	if err != nil {
		return nil, diag.Invalid(err)
	}
	o.plan = &runs.SearchPlan{Rules: base.Search, Specs: list, Settings: settings}
	return list, nil
}

// showSearch shows the progress of a search.
func showSearch(line *console.Line, p runs.SearchProgress) {
	if last := p.Rung == p.Rungs && p.Done == p.Of; !last && !line.Due() {
		return
	}
	text := fmt.Sprintf("%d of %s trained %s (rung %d of %d)", p.Done, diag.Count(p.Of, "trial"), diag.Count(p.Epoch,
		"epoch"), p.Rung, p.Rungs)
	if p.Best != nil {
		text += fmt.Sprintf(", best %s %.4f", p.Measure, *p.Best.Value)
	}
	line.Show(text + console.Left(p.Left))
	if p.Rung == p.Rungs && p.Done == p.Of {
		line.End()
	}
}

// shownTrials is the number of trials in the printed table.
const shownTrials = 5

// printSearch prints the best trials, the gain over the spec as it is, and the rank correlations of the settings.
func printSearch(out io.Writer, s *runs.SearchResults) {
	order := search.Ranking(s.Trials, s.Measure)
	rows := [][]string{{"", s.Measure, "epochs", "setting"}}
	for _, i := range order[:min(len(order), shownTrials)] {
		mark := ""
		if i == s.Chosen-1 {
			mark = "chosen"
		}
		t := &s.Trials[i]
		rows = append(rows, []string{mark, console.Number(t.Value), fmt.Sprint(t.Epochs), settingOrDefault(t.Setting)})
	}
	fmt.Fprintln(out)
	console.Table(out, rows)
	held := diag.Count(s.HeldOut, "held-out bag")
	if s.Folds > 0 {
		held = fmt.Sprintf("%d folds of %s", s.Folds, diag.Count(s.HeldOut, "training bag"))
	}
	diag.Fprintf(out, "\nthe best of %s, by the %s of %s; %s of the trials in %s\n", diag.Count(len(s.Trials), "trial"),
		s.Measure, held, diag.Count(s.Epochs, "epoch"), seconds(s.Seconds))
	if s.OutOfBudget {
		fmt.Fprintln(out, "the budget ended before all rungs: the best trial of those that trained longest was chosen")
	}
	if s.Gain != nil {
		diag.Fprintf(out, "gain over the spec as it is, on these bags: %+.4f (too high, because they chose)\n", *s.Gain)
	}
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(s.Correlations)) {
		parts = append(parts, fmt.Sprintf("%s %+.2f", key, s.Correlations[key]))
	}
	if len(parts) > 0 {
		diag.Fprintf(out, "rank correlation with success: %s\n", strings.Join(parts, ", "))
	}
	diag.Fprintf(out, "trials and figures: %s\n", s.Folder)
}

// settingOrDefault returns a setting for people.
func settingOrDefault(setting string) string {
	if setting == "" {
		return "the spec as it is"
	}
	return setting
}
