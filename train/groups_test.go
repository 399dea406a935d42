// Groups that fail, and groups of which one run fails.

package train_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/train"
)

// toyGroup is the executor of a group, with a toy engine for each run.
type toyGroup struct {
	list  []train.Executor
	epoch func(runs []*train.Run) error // may fail
}

func (g *toyGroup) each(f func(e train.Executor, i int) error) (err error) {
	for i, e := range g.list {
		err = errors.Join(err, f(e, i))
	}
	return err
}

func (g *toyGroup) SetStates(states []*train.State) error {
	return g.each(func(e train.Executor, i int) error { return e.SetStates(states[i : i+1]) })
}

func (g *toyGroup) States() (states []*train.State, err error) {
	err = g.each(func(e train.Executor, _ int) error {
		one, err := e.States()
		states = append(states, one...)
		return err
	})
	return states, err
}

func (g *toyGroup) Epoch(ctx context.Context, runs []*train.Run) error {
	if err := g.epoch(runs); err != nil {
		return err
	}
	for _, r := range runs {
		if err := g.list[r.Index].Epoch(ctx, []*train.Run{r}); err != nil {
			return err
		}
	}
	return nil
}

func (g *toyGroup) Predict(ctx context.Context, runs []*train.Run) error {
	for _, r := range runs {
		if err := g.list[r.Index].Predict(ctx, []*train.Run{r}); err != nil {
			return err
		}
	}
	return nil
}

func (g *toyGroup) Close() error {
	return g.each(func(e train.Executor, _ int) error { return e.Close() })
}

// groupTrainer returns a trainer whose groups round differently in other sizes, as those of engine xla.
func groupTrainer(epoch func(runs []*train.Run) error) *train.GroupTrainer {
	return &train.GroupTrainer{EngineInfo: train.EngineInfo{Engine: "toy", Coupled: true}, Parallel: 1,
		MaxGroup: func(*train.Trial) int { return train.MaxGroup },
		Open: func(runs []*train.Run, _ func(string)) (train.Executor, error) {
			g := &toyGroup{epoch: epoch}
			for _, r := range runs {
				g.list = append(g.list, train.Stepwise(&toyEngine{p: r.Program}, r))
			}
			return g, nil
		}}
}

// toyTrials returns four trials of six epochs that differ in the seed, with folders in dir.
func toyTrials(t *testing.T, dir string) (list []*train.Trial) {
	first := toyOptions(t, nil)
	for i := range 4 {
		trial := toyOptions(t, func(s *language.Spec) { s.Train.Seed.V = i }).Trial
		trial.Data, trial.Name, trial.Dir = first.Data, fmt.Sprint(i), filepath.Join(dir, fmt.Sprint(i))
		trial.Log = filepath.Join(trial.Dir, train.MetricsFile)
		if err := os.MkdirAll(trial.Dir, 0o777); err != nil {
			t.Fatal(err)
		}
		list = append(list, &trial)
	}
	return list
}

func outcomesOf(by train.Trainer, trials []*train.Trial, o train.Options) []train.Outcome {
	outcomes := make([]train.Outcome, len(trials))
	by.Train(context.Background(), trials, o, func(i int, out train.Outcome) { outcomes[i] = out })
	return outcomes
}

func noFault([]*train.Run) error { return nil }

// A group that fails once after a checkpoint continues from there in halves, whether or not it was to resume.
func TestGroupContinuesAfterAFault(t *testing.T) {
	want := outcomesOf(groupTrainer(noFault), toyTrials(t, t.TempDir()), train.Options{EveryCheckpoint: true})
	for _, resume := range []bool{false, true} {
		epochs := 0
		by := groupTrainer(func(runs []*train.Run) error {
			if epochs++; epochs == 5 {
				return errors.New("the device is lost")
			}
			return nil
		})
		seen := &spy{}
		trials := toyTrials(t, t.TempDir())
		for i, out := range outcomesOf(by, trials, train.Options{EveryCheckpoint: true, Resume: resume, Observer: seen}) {
			if out.Err != nil || out.Report.Resumed != 4 || bits(out.Report) != bits(want[i].Report) {
				t.Errorf("resume %t, trial %d: %+v", resume, i, out.Err)
			}
		}
		if epochs != 5+2+2 {
			t.Errorf("resume %t: %d epochs of groups, want 9", resume, epochs)
		}
		if len(seen.done) != 4*6 || seen.plan.Done != 0 {
			t.Errorf("resume %t: the observer saw %d epochs, and %d before", resume, len(seen.done), seen.plan.Done)
		}
		if len(seen.warns) != 2 || !strings.Contains(seen.warns[0], "continuing 2 runs in a group of another size") {
			t.Errorf("resume %t: warnings %q", resume, seen.warns)
		}
	}
}

// Groups that train in parallel end in parallel: done of each waits here for that of the other.
func TestGroupsEndInParallel(t *testing.T) {
	by := groupTrainer(noFault)
	by.Parallel, by.MaxGroup = 2, func(*train.Trial) int { return 2 }
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	var ended sync.WaitGroup
	ended.Add(2)
	by.Train(ctx, toyTrials(t, t.TempDir()), train.Options{EveryCheckpoint: true}, func(i int, out train.Outcome) {
		if out.Err != nil {
			t.Errorf("trial %d: %v", i, out.Err)
		}
		if i%2 > 0 { // not the first of its group
			return
		}
		ended.Done()
		both := make(chan struct{})
		go func() { ended.Wait(); close(both) }()
		select {
		case <-both:
		case <-ctx.Done():
			t.Errorf("trial %d waits for the other group", i)
			ended.Done()
		}
	})
}

// Without Resume, older checkpoints are deleted before the first attempt, not used by the second one.
func TestGroupThatFailsStartsOver(t *testing.T) {
	dir := t.TempDir()
	outcomesOf(groupTrainer(noFault), toyTrials(t, dir), train.Options{EveryCheckpoint: true})
	failed := false
	by := groupTrainer(func([]*train.Run) error {
		if !failed {
			failed = true
			return errors.New("no memory")
		}
		return nil
	})
	for i, out := range outcomesOf(by, toyTrials(t, dir), train.Options{EveryCheckpoint: true}) {
		if out.Err != nil || out.Report.Resumed != 0 {
			t.Errorf("trial %d: %+v", i, out)
		}
	}
}

// A device that is lost for good is the error of each trial, which keeps its checkpoint.
func TestEngineErrorKeepsCheckpoints(t *testing.T) {
	lost := errors.New("the device is lost")
	trials := toyTrials(t, t.TempDir())
	by := groupTrainer(func(runs []*train.Run) error {
		if runs[0].Now().Epoch > 3 {
			return lost
		}
		return nil
	})
	for i, out := range outcomesOf(by, trials, train.Options{EveryCheckpoint: true}) {
		if _, engine := errors.AsType[*train.EngineError](out.Err); !engine || !errors.Is(out.Err, lost) {
			t.Errorf("trial %d: %v", i, out.Err)
		}
		if c, _, err := train.LoadCheckpoint(trials[i].Dir); err != nil || c.Epoch != 3 {
			t.Errorf("trial %d: checkpoint of epoch %d, %v", i, c.Epoch, err)
		}
	}
	for i, out := range outcomesOf(groupTrainer(noFault), trials, train.Options{EveryCheckpoint: true, Resume: true}) {
		if out.Err != nil || out.Report.Resumed != 3 {
			t.Errorf("trial %d continues: %+v", i, out)
		}
	}
}

// A file that cannot be written or read is the error of its run, not of the group.
func TestFileErrorOfOneRun(t *testing.T) {
	want := outcomesOf(groupTrainer(noFault), toyTrials(t, t.TempDir()), train.Options{EveryCheckpoint: true})
	for name, c := range map[string]struct {
		resume bool
		epoch  int // before which the file becomes unusable
		file   string
	}{"a checkpoint to write": {false, 3, train.CheckpointFile}, "a checkpoint to read": {true, 0, train.CheckpointFile},
		"the metrics": {true, 0, train.MetricsFile}} {
		t.Run(name, func(t *testing.T) {
			trials := toyTrials(t, t.TempDir())
			spoil := func(epoch int) {
				path := filepath.Join(trials[1].Dir, c.file)
				if epoch == c.epoch {
					_ = os.Remove(path)
					if err := os.MkdirAll(filepath.Join(path, "folder"), 0o777); err != nil {
						t.Fatal(err)
					}
				}
			}
			spoil(0)
			groups := []int{}
			by := groupTrainer(func(runs []*train.Run) error {
				groups = append(groups, len(runs))
				spoil(runs[0].Now().Epoch)
				return nil
			})
			for i, out := range outcomesOf(by, trials, train.Options{EveryCheckpoint: true, Resume: c.resume}) {
				if (out.Err != nil) != (i == 1) || i != 1 && bits(out.Report) != bits(want[i].Report) {
					t.Errorf("trial %d: %v", i, out.Err)
				}
			}
			if len(groups) != 6 || slices.Max(groups[3:]) != 3 {
				t.Errorf("epochs of %v runs, want 6 in one group", groups)
			}
		})
	}
}

// Settings that are data of a step do not need another program; others do.
func TestProgramKey(t *testing.T) {
	load := func(of string, settings ...string) *language.Spec {
		spec, err := language.Load(of, settings...)
		if err != nil {
			t.Fatal(err)
		}
		return spec
	}
	for setting, shared := range map[string]bool{
		"train.lr=0.5": true, "train.seed=7": true, "loss.attention=0.5": true, "train.eval_every=2": true,
		"train.schedule=step train.decay_at=[2,3] train.decay_factor=0.3": true, "train.warmup=2": true,
		"train.schedule=plateau train.decay_measure=loss train.decay_patience=3 data.split.validation=0.2": true,
		"train.best=loss train.early_stopping=2 train.refit=true data.split.validation=0.2":                true,
		"train.sampling=balanced": false, "train.accumulate=2": false, "train.class_weights=balanced": false,
		"loss=[disambiguation]": false, "train.checkpoint=0": true, "data.split.seed=3": true,
		"train.momentum=0.5": true, "train.weight_decay=0.1": true, "train.clip=2": true, "model.blocks.dropout=0.2": true,
		"train.momentum=0": false, "train.weight_decay=0": false, "train.clip=0": false, "model.blocks.dropout=0": false,
		"train.epochs=9": false, "train.batch=2": false, "train.nesterov=false": false, "train.optimizer=adam": false,
		"weights.schedule=averaging": false, "model.blocks.dense=7": false,
	} {
		base := []string{"train.epochs=4", "train.clip=1"}
		if (train.ProgramKey(load("demipl-mlp", base...)) == train.ProgramKey(load("demipl-mlp", append(base,
			strings.Fields(setting)...)...))) != shared {
			t.Errorf("%s: sharing a program is %v", setting, !shared)
		}
	}
	for _, setting := range []string{"train.beta1=0.8", "train.beta2=0.99", "train.epsilon=0.001"} {
		if train.ProgramKey(load("demipl", "train.optimizer=adam")) != train.ProgramKey(load("demipl", "train.optimizer=adam",
			setting)) {
			t.Errorf("%s: not sharing a program", setting)
		}
	}
}
