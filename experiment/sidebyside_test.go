// Cells that train side by side in one program have the results of cells that train one by one.

package experiment

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/miplc/miplc/internal/testkit/enginetest"
	"github.com/miplc/miplc/runs"
	"github.com/miplc/miplc/train"
	"github.com/miplc/miplc/train/engines"
)

// parallelText is an experiment with cells that share programs (splits, r, settings, learning rates),
// two cells whose batch size needs separate programs, and a fitted learner.
const parallelText = `
name: parallel
data:
  - {name: P, synth: {set: prototypes, bags: 30, features: 4, min_size: 2, max_size: 3}, r: [1, 2]}
learners:
  - {name: demipl, spec: demipl, set: {train.epochs: 3}, grid: {train.lr: [0.01, 0.05], loss.attention: [0, 0.01]}}
  - {name: batches, spec: demipl, set: {train.epochs: 2}, grid: {train.batch: [1, 2]}, r: 1}
  - {name: lambda, spec: demipl, set: {train.epochs: 3}, vary: {loss.attention: [0.001, 0.1]}, r: 2}
  - {name: proden, spec: proden-mean, set: {train.epochs: 2}}
  - {name: pl-aggd, spec: pl-aggd-mean, r: 1}
splits: {count: 2}
attention: {epochs: [1, 3]}
`

// Cells that run together have the results of cells that run one by one, on the reference engine.
func TestSideBySideEqualsOneByOne(t *testing.T) {
	e := parse(t, parallelText)
	alone, _, err := run(t, e, Work{Dir: t.TempDir(), Place: engines.Place{Engine: "gorgonia"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, jobs := range []int{0, 3} {
		together, w, err := run(t, e, Work{Dir: t.TempDir(), Parallel: jobs, Place: engines.Place{Engine: "xla",
			Device: "go", Open: enginetest.Open}})
		if err != nil {
			t.Fatal(err)
		}
		if len(together) != len(alone) || len(w.ran) != len(alone) {
			t.Fatalf("%d results together, %d one by one", len(together), len(alone))
		}
		if len(w.note) == 0 || !strings.HasPrefix(w.note[0], "compiling for ") {
			t.Errorf("the notes on compiling are %q", w.note)
		}
		for key, text := range alone {
			var want, got Result
			if err := errors.Join(json.Unmarshal([]byte(text), &want), json.Unmarshal([]byte(together[key]), &got)); err != nil {
				t.Fatal(err)
			}
			if want.Engine == "gorgonia" {
				want.Engine = "xla"
			}
			checkMeasures(t, &got, &want)
			a, _ := json.Marshal(want)
			b, _ := json.Marshal(got)
			if string(a) != string(b) {
				t.Errorf("jobs %d:\none by one  %s\ntogether    %s", jobs, a, b)
			}
		}
	}
}

// Cells that share a program form one group: all r and splits, and learners that differ only in
// rates.
func TestGroups(t *testing.T) {
	e := parse(t, parallelText)
	loaded, err := loadSpecs(e)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	lock, err := claim(dir, e)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	plan, err := planCells(e, loaded, Work{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	trainers := engines.NewTrainers(engines.Place{Engine: "xla", Device: "go", Open: enginetest.Open})
	defer trainers.Close()
	// demipl has 2 values of r, 2 splits and 2 values of lambda; batches has 2 splits; proden has 4
	// cells; pl-aggd has 2 splits, which are not grouped. A finished cell keeps its index.
	groups, err := planGroups(plan.Cells, trainers, train.MaxGroup)
	if err != nil {
		t.Fatal(err)
	}
	groups = removeCells(groups, func(c *Cell) bool { return c == &plan.Cells[0] })
	var sizes, left []int
	for _, g := range groups {
		sizes, left = append(sizes, g.Planned), append(left, len(g.Cells))
	}
	if !slices.Equal(sizes, []int{8, 2, 4, 1, 1}) || !slices.Equal(left, []int{7, 2, 4, 1, 1}) {
		t.Errorf("groups of %v cells, %v of them left", sizes, left)
	}
}

// A cell with non-finite numbers fails without affecting the other cells of its group.
func TestSideBySideFailure(t *testing.T) {
	e := parse(t, strings.Replace(tiny, "learners:", `learners:
  - {name: wild, spec: demipl, set: {train.epochs: 2, train.lr: 1e30}}`, 1))
	dir := t.TempDir()
	_, w, err := run(t, e, Work{Dir: dir, Place: engines.Place{Engine: "xla", Device: "go", Open: enginetest.Open}})
	var failed *failedError
	if !errors.As(err, &failed) || failed.Progress.Failed != 4 || len(w.ran) != 12 {
		t.Fatalf("%d cells ran, %v", len(w.ran), err)
	}
	for _, r := range accuracies(t, dir) {
		if (r.Error != "") != (r.Learner == "wild") {
			t.Errorf("%s: %q", r.Coord, r.Error)
		}
	}
}

// An experiment that is interrupted between groups continues to the same results.
func TestSideBySideInterrupted(t *testing.T) {
	e := parse(t, tiny)
	o := Work{Dir: t.TempDir(), Parallel: 2, Place: engines.Place{Engine: "xla", Device: "go", Open: enginetest.Open}}
	whole, _, err := run(t, e, o)
	if err != nil {
		t.Fatal(err)
	}
	o.Dir = t.TempDir()
	ctx, stop := context.WithCancel(context.Background())
	o.Observer = &watch{after: 2, stop: stop}
	var stopped *InterruptedError
	if _, err := Run(ctx, e, o); !errors.As(err, &stopped) || stopped.Progress.Done == 0 || stopped.Progress.Done == 8 {
		t.Fatalf("%v", err)
	}
	again, w, err := run(t, e, o)
	if err != nil || len(w.ran) != 8-stopped.Progress.Done {
		t.Fatalf("%d cells ran after %d, %v", len(w.ran), stopped.Progress.Done, err)
	}
	for key := range whole {
		if whole[key] != again[key] {
			t.Errorf("uninterrupted %s\ncontinued     %s", whole[key], again[key])
		}
	}
}

// With keep: models, the cells of a group write checked models too.
func TestSideBySideModels(t *testing.T) {
	e := parse(t, strings.Replace(tiny, "splits:", "keep: models\nsplits:", 1))
	enginetest.Library(t)
	o := Work{Dir: t.TempDir(), Place: engines.Place{Engine: "xla", Device: "go", Open: enginetest.Open}}
	if _, _, err := run(t, e, o); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(o.Dir, ModelsFolder, "P_r=2", "demipl", "split-2")
	s, err := runs.ReadSummary(dir)
	if err != nil || s.Engine != "xla" || s.Parity == nil {
		t.Fatalf("%+v, %v", s, err)
	}
	if _, err := os.Stat(runs.ModelPath(dir)); err != nil {
		t.Error(err)
	}
}

// checkMeasures compares the measures of two engines, which round differently, and then makes them
// equal.
func checkMeasures(t *testing.T, got, want *Result) {
	t.Helper()
	for name, v := range want.Measures {
		if other := got.Measures.Get(name); other == nil || math.Abs(*other-v) > 1e-6 {
			t.Errorf("%s: %s is %v, want %v", want.Coord, name, other, v)
		}
	}
	if len(got.Measures) != len(want.Measures) || len(want.Measures) == 0 {
		t.Errorf("%s: measures %v, want %v", want.Coord, got.Measures, want.Measures)
	}
	got.Measures = want.Measures
}
