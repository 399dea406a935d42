// Searches inside of cells give the same results in one process, in shards and after an interruption.

package experiment

import (
	"context"
	"errors"
	"maps"
	"os"
	"strings"
	"testing"

	"github.com/miplc/miplc/experiment/definition"
	"github.com/miplc/miplc/train/search"
)

// searching has a search with rungs after 1, 3 and 9 epochs, of specs with and without validation bags.
const searching = `
name: searching
data:
  - {name: P, synth: {set: prototypes, bags: 40, features: 4}}
  - {name: V, synth: {set: prototypes, bags: 60, features: 4}, splits: {validation: 0.3}}
learners:
  - name: random
    spec: demipl
    set: {train.epochs: 9, train.engine: native}
    search: {trials: 9, halving: 3}
    grid: {train.lr: {log: [0.0001, 1]}, train.momentum: [0, 0.9]}
    cases: [{data: V, set: {train.best: loss, train.refit: true, train.eval_every: 2}}]
splits: {count: 2}
choose: {measure: loss, holdout: 0.3}
`

// onFolds is searching with two inner folds.
var onFolds = strings.Replace(searching, "holdout: 0.3", "folds: 2", 1)

func TestSearchInCells(t *testing.T) {
	t.Run("held-out bags", func(t *testing.T) { testSearchInCells(t, searching, 0) })
	t.Run("folds", func(t *testing.T) { testSearchInCells(t, onFolds, 2) })
}

func testSearchInCells(t *testing.T, text string, folds int) {
	e := parse(t, text)
	dir := t.TempDir()
	whole, watch, err := run(t, e, Work{Dir: dir})
	if err != nil || len(whole) != 4 {
		t.Fatalf("%d results, %v", len(whole), err)
	}
	// V has rungs after 2, 4 and 9 epochs, and refits
	if want := max(1, folds)*2*(9*1+3*2+1*6+9*2+3*2+1*5) + 4*9; len(watch.left) < want || len(watch.left) > want+2*9 {
		t.Errorf("%d epochs, want %d and those of the refits", len(watch.left), want)
	}
	for _, r := range accuracies(t, dir) {
		byRungs, chosen := map[int]int{}, search.TrialResult{}
		for _, one := range r.Trials {
			byRungs[len(one.Rungs)]++
			if one.Setting == r.Setting {
				chosen = one
			}
			if len(one.Folds) != folds {
				t.Errorf("%s: values of folds %v", r.Coord, one.Folds)
			}
		}
		if !maps.Equal(byRungs, map[int]int{1: 6, 2: 2, 3: 1}) || len(chosen.Rungs) != 3 || chosen.Epochs != 9 {
			t.Errorf("%s: trials by the number of rungs %v, chosen %+v", r.Coord, byRungs, chosen)
		}
	}
	dir = t.TempDir()
	shardPlan, err := PlanShards(e, Work{Dir: dir}, Sharding{Shards: 3})
	if err != nil || len(shardPlan.Shards) != 3 {
		t.Fatalf("%+v, %v", shardPlan, err)
	}
	for i := range 3 {
		if _, err := RunShard(context.Background(), Shard{I: i + 1, N: 3}, Work{Dir: dir}); err != nil {
			t.Fatal(err)
		}
	}
	if shards := read(t, dir); !maps.Equal(shards, whole) {
		t.Errorf("three shards give other results than one process:\n%v\n%v", shards, whole)
	}
}

// An interrupted search continues: what has been trained is not trained again, and the results are the same. It is
// interrupted in each rung and refit of the first cell, and in the second one.
func TestInterruptedSearch(t *testing.T) {
	t.Run("held-out bags", func(t *testing.T) { testInterruptedSearch(t, searching, []int{3, 11, 17, 25, 40}) })
	t.Run("folds", func(t *testing.T) { testInterruptedSearch(t, onFolds, []int{2, 14, 23, 37}) })
}

func testInterruptedSearch(t *testing.T, text string, epochs []int) {
	e := parse(t, strings.Replace(text, "splits: {count: 2}", "splits: {count: 1}", 1))
	whole, complete, err := run(t, e, Work{Dir: t.TempDir(), Parallel: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, after := range epochs {
		dir := t.TempDir()
		ctx, stop := context.WithCancel(context.Background())
		_, err := Run(ctx, e, Work{Dir: dir, Parallel: 1, Observer: &stopAfterEpochs{n: after, stop: stop}})
		if stopped := (*InterruptedError)(nil); !errors.As(err, &stopped) {
			t.Fatalf("after %d epochs: %v", after, err)
		}
		again, w, err := run(t, e, Work{Dir: dir, Parallel: 1})
		if err != nil || !maps.Equal(whole, again) {
			t.Errorf("after %d epochs: %v, other results:\n%v\n%v", after, err, again, whole)
		}
		if len(w.left) > len(complete.left)-after+1 {
			t.Errorf("after %d epochs: %d more of %d", after, len(w.left), len(complete.left))
		}
		if _, err := os.Stat(dir + "/" + TrialsFolder); err == nil {
			t.Errorf("after %d epochs: checkpoints are left", after)
		}
	}
}

// stopAfterEpochs stops an experiment after some epochs.
type stopAfterEpochs struct {
	silent
	n    int
	stop func()
}

func (s *stopAfterEpochs) Epoch(Progress) {
	if s.n--; s.n == 0 {
		s.stop()
	}
}

// A measure that the held-out bags do not have is an error at its place, before anything is trained.
func TestSearchByWrongMeasure(t *testing.T) {
	for name, want := range map[string]string{
		"group_accuracy": "test.yaml:14:19: choose.measure is group_accuracy, which is not defined on the bags that are " +
			"held out in split 1 of P r=1",
		"hamming_loss": "test.yaml:14:19: choose.measure is hamming_loss, which is not defined on the bags that are held " +
			"out in split 1 of P r=1",
		"lossy": "test.yaml:14:19: choose.measure cannot be \"lossy\" (did you mean \"loss\"?)",
	} {
		text := strings.Replace(searching, "measure: loss", "measure: "+name, 1)
		e, err := definition.Parse("test.yaml", []byte(text))
		if err == nil {
			_, err = Run(context.Background(), e, Work{Dir: t.TempDir()})
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Folds that do not fit the bags, and measures that are not defined on one of them, are errors at their place, before
// anything is trained.
func TestSearchByWrongFolds(t *testing.T) {
	for choose, want := range map[string]string{
		"folds: 1": "test.yaml:14:17: choose.folds must be between 2 and 1000, not 1",
		"folds: 60": "test.yaml:14:17: P r=1: choose.folds 60 of the training bags of split 1: 28 bags " +
			"cannot be divided into 60 folds",
		"folds: 3, holdout: 0.2": "test.yaml:14:29: choose.holdout has no effect with folds",
		"folds: 20, measure: auroc": "test.yaml:14:30: choose.measure is auroc, which is not defined on the bags that are " +
			"held out in fold 9 of split 1 of P r=1",
	} {
		text := strings.Replace(searching, "measure: loss, holdout: 0.3", choose, 1)
		e, err := definition.Parse("test.yaml", []byte(text))
		dir := t.TempDir()
		if err == nil {
			_, err = Run(context.Background(), e, Work{Dir: dir})
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", choose, err)
		}
	}
}

// Learners may differ only in how they search.
func TestSearchesDiffer(t *testing.T) {
	for how, valid := range map[string]bool{"8": true, "{trials: 9, halving: 4}": true,
		"{trials: 9, seed: 2, halving: 3}": true,
		"{trials: 9, halving: 3}":          false} {
		_, err := loadSpecs(parse(t, `
name: searches
data: [{name: P, synth: prototypes}]
learners:
  - {name: a, spec: demipl, search: {trials: 9, halving: 3}, grid: {train.lr: {log: [0.001, 0.1]}}}
  - {name: b, spec: demipl, grid: {train.lr: {log: [0.001, 0.1]}}, search: `+how+`}
`))
		if valid != (err == nil) {
			t.Errorf("%s: %v", how, err)
		}
	}
}
