// A search gives the same results however it is interrupted, and the numbers of a trial do not depend on the others.

package search

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"reflect"
	"slices"
	"sync"
	"testing"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/compile/native"
	"github.com/miplc/miplc/compile/native/kernel"
	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/data/measure"
	"github.com/miplc/miplc/internal/testkit/modeltest"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/train"
	"github.com/miplc/miplc/train/engines"
)

func TestRungs(t *testing.T) {
	for _, c := range []struct {
		rules         Rules
		trials        int
		epochs, every int
		want          []int
	}{
		{Rules{}, 64, 100, 1, []int{100}},
		{Rules{Halving: 3, MinEpochs: 1}, 64, 100, 1, []int{4, 12, 34, 100}},
		{Rules{Halving: 4, MinEpochs: 1}, 64, 100, 1, []int{2, 7, 25, 100}},
		{Rules{Halving: 3, MinEpochs: 10}, 64, 100, 1, []int{12, 34, 100}},
		{Rules{Halving: 3, MinEpochs: 1}, 8, 100, 1, []int{34, 100}},
		{Rules{Halving: 3, MinEpochs: 1}, 2, 100, 1, []int{100}},
		{Rules{Halving: 3, MinEpochs: 1}, 64, 2, 1, []int{2}},
		{Rules{Halving: 3, MinEpochs: 1}, 64, 100, 5, []int{5, 15, 35, 100}},
		{Rules{Halving: 2, MinEpochs: 1}, 4, 5, 4, []int{4, 4, 5}},
	} {
		levels := c.rules.levels(slices.Repeat([]int{c.epochs}, c.trials))
		if got := c.rules.rungs(c.epochs, levels, c.every); !slices.Equal(got, c.want) {
			t.Errorf("%+v, %d trials of %d epochs: rungs %v, want %v", c.rules, c.trials, c.epochs, got, c.want)
		}
	}
	// 64 trials to epoch 4, 21 to 12, 7 to 34, 2 to 100
	if got, want := (Rules{Halving: 3, MinEpochs: 1}).Share(64, 100), (64*4+21*8+7*22+2*66)/6400.; got != want {
		t.Errorf("share %v, want %v", got, want)
	}
	if got := (Rules{}).Share(5, 100); got != 1 {
		t.Errorf("share %v of a search without halving", got)
	}
}

// A better value comes before fewer parameters, these before the number of the trial; diverged trials are last.
func TestRanking(t *testing.T) {
	s := &Search{left: []int{0, 1, 2, 3, 4}, rungs: [][]int{{1}, {1}, {1}, {1}, {1}}, Results: []TrialResult{
		{Parameters: 9, Rungs: []Rung{{1, 0.5, false}}},
		{Parameters: 5, Rungs: []Rung{{1, 0.5, false}}},
		{Parameters: 5, Rungs: []Rung{{1, 0.5, false}}},
		{Parameters: 1, Rungs: []Rung{{1, 0.9, true}}},
		{Parameters: 1, Error: "out of memory"},
	}}
	for name, want := range map[string][]int{measure.Accuracy: {1, 2, 0, 3}, measure.LogLoss: {1, 2, 0, 3}} {
		s.Measure = measure.Find(name)
		if got := s.ranked(1); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	s.Results[0].Rungs[0].Value = 0.4
	for name, want := range map[string]int{measure.Accuracy: 1, measure.LogLoss: 0} {
		s.Measure = measure.Find(name)
		if got, err := s.Chosen(); err != nil || got != want {
			t.Errorf("%s: trial %d, %v", name, got, err)
		}
	}
	s = &Search{rungs: [][]int{{1}}, left: []int{0}, Results: []TrialResult{{Setting: "train.lr=9", Error: "not finite"}}}
	if _, err := s.Chosen(); err == nil || err.Error() != "every setting of the grid failed; train.lr=9: not finite" {
		t.Errorf("%v", err)
	}
}

// recorder is a trainer that keeps the last outcome of each trial, and ends a context after some outcomes.
type recorder struct {
	train.Trainer
	mu    sync.Mutex
	last  map[string]train.Outcome
	after int
	stop  func()
}

func (r *recorder) Train(ctx context.Context, trials []*train.Trial, o train.Options, done func(int, train.Outcome)) {
	r.Trainer.Train(ctx, trials, o, func(i int, out train.Outcome) {
		r.mu.Lock()
		defer r.mu.Unlock()
		if out.Err == nil {
			r.last[trials[i].Name] = out
		}
		if done(i, out); r.after > 0 {
			if r.after--; r.after == 0 {
				r.stop()
			}
		}
	})
}

func trainer(t *testing.T) train.Trainer {
	t.Helper()
	kernels, err := kernel.Choose("")
	if err != nil {
		t.Fatal(err)
	}
	info := train.EngineInfo{Engine: "native", Device: "cpu"}
	return &train.StepTrainer{EngineInfo: info, New: func(p *compile.Program) (train.Engine, error) {
		return engines.NewNative(p, native.Options{Kernels: kernels, Threads: 1}), nil
	}}
}

// nine returns a search of nine trials of 9 epochs with rungs after 1, 3 and 9, on folds of the training bags if there
// are some.
func nine(t *testing.T, dir string, folds int) *Search {
	t.Helper()
	one := modeltest.Quickstart(t, 30, 9, 1)
	splits := []*data.Split{one.Split}
	if folds > 0 {
		splits = nil
		for i := range folds {
			inner := &data.Split{}
			for n, bag := range one.Split.Train {
				if n%folds == i {
					inner.Test = append(inner.Test, bag)
				} else {
					inner.Train = append(inner.Train, bag)
				}
			}
			splits = append(splits, inner)
		}
	}
	var trials [][]*train.Trial
	var settings []string
	for i := range 9 {
		lr := 0.0001 * float64(int(1)<<i)
		trial := modeltest.Vary(t, one, fmt.Sprint("trial-", i+1), modeltest.Rate(lr))
		trial.Dir, trial.CheckpointInterval = filepath.Join(dir, trial.Name), 1<<40
		trials, settings = append(trials, OnFolds(trial, splits)), append(settings, fmt.Sprintf("train.lr=%v", lr))
	}
	return New(Rules{Measure: train.HeldOutMeasure(train.MeasureLoss), Halving: 3, MinEpochs: 1}, trials, settings)
}

// results returns the results without times.
func results(s *Search) []TrialResult {
	list := slices.Clone(s.Results)
	for i := range list {
		list[i].Seconds = 0
	}
	return list
}

// The model and the curve of a trial are those of the same training alone, without pauses, on each fold.
func TestAlone(t *testing.T) {
	for _, folds := range []int{0, 3} {
		t.Run(fmt.Sprint(folds, " folds"), func(t *testing.T) { testAlone(t, folds) })
	}
}

func testAlone(t *testing.T, folds int) {
	r := &recorder{Trainer: trainer(t), last: map[string]train.Outcome{}}
	s := nine(t, t.TempDir(), folds)
	total := s.Total()
	if err := Run(context.Background(), r, []*Search{s}, train.Options{}, nil); err != nil {
		t.Fatal(err)
	}
	chosen, err := s.Chosen()
	if err != nil {
		t.Fatal(err)
	}
	if want := max(1, folds) * (9*1 + 3*2 + 1*6); s.Trained() != want || total != want || s.Results[chosen].Epochs != 9 ||
		len(s.Results[chosen].Rungs) != 3 {
		t.Errorf("%d of %d epochs, chosen %+v", s.Trained(), total, s.Results[chosen])
	}
	for i, found := range s.Results {
		sum := 0.0
		for fold, trial := range s.Trials[i] {
			alone := modeltest.Vary(t, modeltest.Quickstart(t, 30, 9, 1), "alone", func(spec *language.Spec) {
				spec.Train.LR.V = trial.Program.Spec.Train.LR.V
			})
			alone.Split, alone.Pause, alone.Curve = trial.Split, found.Epochs, []int{}
			if found.Epochs == 9 {
				alone.Pause = 0
			}
			want, err := train.TrainOne(context.Background(), trainer(t), alone, train.Options{})
			if err != nil {
				t.Fatal(err)
			}
			got := r.last[trial.Name].Report
			if !reflect.DeepEqual(got.State, want.State) || !reflect.DeepEqual(got.Weights, want.Weights) {
				t.Errorf("%s: its parameters or label weights differ from those of a training alone", trial.Name)
			}
			loss := want.Measures.Test()[train.MeasureLoss]
			if folds > 0 && found.Folds[fold] != loss {
				t.Errorf("%s: loss %v, alone %v", trial.Name, found.Folds[fold], loss)
			}
			sum += loss
		}
		if mean := sum / float64(max(1, folds)); math.Abs(mean-*found.Value) > 1e-11 || folds == 0 && mean != *found.Value {
			t.Errorf("trial %d: loss %v, alone %v", i+1, *found.Value, mean)
		}
	}
	if points := s.Results[chosen].Curve; len(points) != 9 || points[8].Value != *s.Results[chosen].Value {
		t.Errorf("curve %v", points)
	}
}

// A search that is interrupted after any training, and continued by another process, has the same results and choice.
func TestInterruption(t *testing.T) {
	for _, folds := range []int{0, 2} {
		t.Run(fmt.Sprint(folds, " folds"), func(t *testing.T) { testInterruption(t, folds) })
	}
}

func testInterruption(t *testing.T, folds int) {
	whole := nine(t, t.TempDir(), folds)
	if err := Run(context.Background(), trainer(t), []*Search{whole}, train.Options{}, nil); err != nil {
		t.Fatal(err)
	}
	chosen, _ := whole.Chosen()
	trainings := max(1, folds) * (9 + 3 + 1)
	for after := 1; after <= trainings; after += max(1, 2*folds+1) {
		dir := t.TempDir()
		ctx, stop := context.WithCancel(context.Background())
		r := &recorder{Trainer: trainer(t), last: map[string]train.Outcome{}, after: after, stop: stop}
		if err := Run(ctx, r, []*Search{nine(t, dir, folds)}, train.Options{Parallel: 1}, nil); err == nil {
			t.Fatal("not interrupted")
		}
		s := nine(t, dir, folds)
		r = &recorder{Trainer: trainer(t), last: map[string]train.Outcome{}}
		if err := Run(context.Background(), r, []*Search{s}, train.Options{}, nil); err != nil {
			t.Fatal(err)
		}
		if got, err := s.Chosen(); err != nil || got != chosen || !reflect.DeepEqual(results(s), results(whole)) {
			t.Errorf("after %d trainings: trial %d, want %d\n%+v\n%+v", after, got, chosen, results(s), results(whole))
		}
		if after == trainings && len(r.last) > 0 {
			t.Errorf("a finished search trained %d trials again", len(r.last))
		}
	}
}
