// Trials of a group train like single ones, end alone and resume.

package xla_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/data/generate"
	"github.com/miplc/miplc/internal/testkit/modeltest"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/train"
	"github.com/miplc/miplc/train/xla"
)

// together trains a list and returns the outcomes in its order.
func together(ctx context.Context, by *xla.Trainer, list []*train.Trial, o train.Options) []train.Outcome {
	outcomes := make([]train.Outcome, len(list))
	by.Train(ctx, list, o, func(i int, out train.Outcome) { outcomes[i] = out })
	return outcomes
}

// Several trials in one program agree with single trainings on the oracle: with one bag per step,
// with a smaller last batch, and with few steps per call.
func TestTrialsMatchSingleRuns(t *testing.T) {
	b := goBackend(t)
	for _, c := range []struct{ batch, feed int }{{1, 0}, {16, 0}, {4, 20000}} {
		list := modeltest.Mixed(t, modeltest.Quickstart(t, 60, 3, c.batch))
		got := together(context.Background(), &xla.Trainer{Device: b, FeedBytes: c.feed}, list, train.Options{})
		for i, trial := range list {
			t.Run(trial.Name, func(t *testing.T) {
				if got[i].Err != nil {
					t.Fatal(got[i].Err)
				}
				want := run(t, trial)
				sameRun(t, got[i].Report, want, 1e-5)
				sameSummary(t, got[i].Report, want)
			})
		}
	}
}

// Trials of a group may differ in the numbers of their optimizer and in their dropout rates, with one program.
func TestTrialsWithOtherNumbers(t *testing.T) {
	b := goBackend(t)
	d, err := generate.Prototypes(generate.DefaultPrototypes)
	if err != nil {
		t.Fatal(err)
	}
	for optimizer, settings := range map[string][]string{
		"sgd":     {"train.momentum=0.8", "train.weight_decay=0.01", "train.momentum=0.5", "train.clip=0.1"},
		"adam":    {"train.lr=0.002", "train.beta1=0.5", "train.beta2=0.9", "train.epsilon=0.01"},
		"adamw":   {"train.lr=0.002", "train.weight_decay=0.1", "train.beta1=0.7", "model.blocks.dropout=0.2"},
		"rmsprop": {"train.momentum=0.1", "train.alpha=0.5", "train.momentum=0.4", "train.epsilon=0.1"},
	} {
		var list []*train.Trial
		for _, setting := range settings {
			spec, err := language.Load("demipl-mlp", "train.optimizer="+optimizer, "train.epochs=2", "train.clip=1",
				"train.weight_decay=0.001", "model.blocks.dense=6", "train.batch=8", settings[0], setting)
			if err != nil {
				t.Fatal(err)
			}
			trial := modeltest.Trial(t, spec, d)
			trial.Name = setting
			if list = append(list, trial); train.ProgramKey(spec) != train.ProgramKey(list[0].Program.Spec) {
				t.Errorf("%s: %s needs another program", optimizer, setting)
			}
		}
		for i, out := range together(context.Background(), &xla.Trainer{Device: b}, list, train.Options{}) {
			if out.Err != nil {
				t.Fatal(out.Err)
			}
			t.Run(optimizer+" "+list[i].Name, func(t *testing.T) { sameRun(t, out.Report, run(t, list[i]), 1e-4) })
		}
	}
}

func sameSummary(t *testing.T, got, want *train.Report) {
	t.Helper()
	if !reflect.DeepEqual(got.Detail.Confusion, want.Detail.Confusion) || got.DetailOf != want.DetailOf {
		t.Errorf("confusion %v of %s, want %v of %s", got.Detail.Confusion, got.DetailOf, want.Detail.Confusion,
			want.DetailOf)
	}
	for i, w := range want.Trajectories {
		g := got.Trajectories[i]
		if g.Bag != w.Bag || g.Label != w.Label || !reflect.DeepEqual(g.Candidates, w.Candidates) ||
			len(g.Weights) != len(w.Weights) {
			t.Errorf("trajectory %d is of bag %d with %d points, want bag %d with %d", i, g.Bag, len(g.Weights), w.Bag,
				len(w.Weights))
		}
	}
	if len(got.Attention) != len(want.Attention) {
		t.Fatalf("%d attention snapshots, want %d", len(got.Attention), len(want.Attention))
	}
	for i, w := range want.Attention {
		g := got.Attention[i]
		near(t, "attention of positive training instances", g.Train.Positive, w.Train.Positive, 1e-5)
		near(t, "attention of negative test instances", g.Test.Negative, w.Test.Negative, 1e-5)
	}
}

// imageSpec is a small network on images of 8 by 8 with the layers of the paper's.
const imageSpec = `
name: images
extends: demipl-image.yaml
data:
  set: generated:prototypes
  generated: {features: 64}
  shape: [1, 8, 8]
model:
  blocks:
    - conv2d: {channels: 3, kernel: 3}
    - relu
    - maxpool2d: 2
    - conv2d: {channels: 4, kernel: 2}
    - relu
    - flatten
    - dense: 6
    - dropout: 0.5
    - relu
    - attention: {kind: disambiguation, gates: separate, scorer: linear, width: 0}
    - pool: attention
    - classifier: softmax
train: {epochs: 2, batch: 2, lr: 0.01}
`

// Convolutions support the trial axis.
func TestImageTrialsMatchSingleRuns(t *testing.T) {
	b := goBackend(t)
	o := generate.DefaultPrototypes
	o.Bags, o.Features = 20, 64
	d, err := generate.Prototypes(o)
	if err != nil {
		t.Fatal(err)
	}
	s, err := language.Parse("images.yaml", []byte(imageSpec))
	if err != nil {
		t.Fatal(err)
	}
	plain := modeltest.Trial(t, s, d)
	list := []*train.Trial{modeltest.Vary(t, plain, "plain", nil), modeltest.Vary(t, plain, "seed", modeltest.Seed(2)),
		modeltest.Vary(t, plain, "rate", modeltest.Rate(0.002))}
	got := together(context.Background(), &xla.Trainer{Device: b}, list, train.Options{})
	for i, trial := range list {
		if got[i].Err != nil {
			t.Fatal(got[i].Err)
		}
		sameRun(t, got[i].Report, run(t, trial), 1e-5)
	}
}

// A trial whose learning rate is too large fails with the place of the error and does not change
// the others.
func TestTrialEndsAlone(t *testing.T) {
	b := goBackend(t)
	o := modeltest.Quickstart(t, 60, 3, 1)
	list := []*train.Trial{modeltest.Vary(t, o, "plain", nil), modeltest.Vary(t, o, "wild", modeltest.Rate(1e30))}
	got := together(context.Background(), &xla.Trainer{Device: b}, list, train.Options{})
	var bad *train.NonFiniteError
	if !errors.As(got[1].Err, &bad) || bad.Epoch != 1 || len(bad.Bags) != 1 || got[1].Report != nil {
		t.Errorf("the trial with the rate 1e30 ended with %v", got[1].Err)
	}
	if got[0].Err != nil {
		t.Fatal(got[0].Err)
	}
	sameRun(t, got[0].Report, run(t, o), 1e-5)
}

// stop ends the training after some epochs, all trials counted.
type stop struct {
	train.Silent
	mu     sync.Mutex
	epochs int
	cancel func()
}

func (s *stop) Epoch(train.Metrics, train.Progress) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.epochs--; s.epochs == 0 {
		s.cancel()
	}
}

// Two trainings of a group have the same bits, as has one that is interrupted several times and
// resumed. Trials with earlier checkpoints, and one that is finished, do not change the others.
func TestTrialsResumeToSameBits(t *testing.T) {
	b := goBackend(t)
	kept := func(dir string) []*train.Trial {
		list := modeltest.Mixed(t, modeltest.Quickstart(t, 60, 4, 4))
		list = append(list, modeltest.Vary(t, list[0], "wild", modeltest.Rate(1e30)))
		for i, trial := range list {
			trial.Dir = filepath.Join(dir, fmt.Sprint(i))
		}
		return list
	}
	whole, broken := t.TempDir(), t.TempDir()
	want := together(context.Background(), &xla.Trainer{Device: b}, kept(whole), train.Options{})
	for i, epochs := range []int{3, 6, 5} { // summed over the 6 trials that continue
		ctx, cancel := context.WithCancel(context.Background())
		got := together(ctx, &xla.Trainer{Device: b}, kept(broken), train.Options{Resume: true,
			Observer: &stop{epochs: epochs, cancel: cancel}})
		if !errors.Is(got[0].Err, context.Canceled) {
			t.Fatalf("stopped after %d epochs: %v", epochs, got[0].Err)
		}
		if i == 1 { // the state after a kill between two saves
			current := filepath.Join(broken, "2", train.CheckpointFile)
			if err := os.Rename(filepath.Join(broken, "2", train.PreviousFile), current); err != nil {
				t.Fatal(err)
			}
		}
	}
	got := together(context.Background(), &xla.Trainer{Device: b}, kept(broken), train.Options{Resume: true})
	for i := range want {
		if (want[i].Err == nil) != (got[i].Err == nil) {
			t.Fatalf("trial %d: uninterrupted %v, resumed %v", i, want[i].Err, got[i].Err)
		}
		if want[i].Err != nil {
			continue
		}
		if got[i].Report.Resumed == 0 {
			t.Errorf("trial %d was not resumed", i)
		}
		x, err1 := os.ReadFile(filepath.Join(whole, fmt.Sprint(i), train.CheckpointFile))
		y, err2 := os.ReadFile(filepath.Join(broken, fmt.Sprint(i), train.CheckpointFile))
		if err := errors.Join(err1, err2); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(x, y) {
			t.Errorf("trial %d: the last checkpoint of the resumed training differs", i)
		}
	}
	// A group of another size might round differently.
	said := &notes{}
	part := together(context.Background(), &xla.Trainer{Device: b}, kept(broken)[:3], train.Options{Resume: true,
		Observer: said})
	if part[0].Err != nil || part[0].Report.Resumed == 0 || len(said.warned) != 1 ||
		!strings.Contains(said.warned[0], "continuing 3 runs in a group of another size") {
		t.Errorf("a part of the group continues: %v, warnings %q", part[0].Err, said.warned)
	}
}

// Errors of one trial do not affect others; the end of the context ends all.
func TestTrialsRefused(t *testing.T) {
	b := goBackend(t)
	o := modeltest.Quickstart(t, 60, 1, 1)
	for want, split := range map[string]*data.Split{"left for training": {Test: []int{1}},
		"names bag 61": {Train: []int{60}}} {
		wrong := modeltest.Vary(t, o, "wrong", nil)
		wrong.Split = split
		got := together(context.Background(), &xla.Trainer{Device: b}, []*train.Trial{wrong, modeltest.Vary(t, o, "right",
			nil)}, train.Options{})
		if got[0].Err == nil || !strings.Contains(got[0].Err.Error(), want) || got[1].Err != nil {
			t.Errorf("errors %v and %v, want one with %q", got[0].Err, got[1].Err, want)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for i, out := range together(ctx, &xla.Trainer{Device: b}, modeltest.Mixed(t, o), train.Options{}) {
		if !errors.Is(out.Err, context.Canceled) {
			t.Errorf("trial %d after cancel: %v", i, out.Err)
		}
	}
}

// Trials that share program and bags train in groups of nearly the same size; others do not.
func TestGroups(t *testing.T) {
	b := goBackend(t)
	o := modeltest.Quickstart(t, 60, 1, 1)
	list := append(modeltest.Mixed(t, o), modeltest.Vary(t, o, "batches", func(s *language.Spec) { s.Train.Batch.V = 2 }))
	other := modeltest.Vary(t, o, "other bags", nil)
	set := *o.Data
	set.Instances = append([]float32(nil), set.Instances...)
	set.Instances[0]++
	other.Data = &set
	count := &notes{}
	together(context.Background(), &xla.Trainer{Device: b}, append(list, other), train.Options{Parallel: 4,
		Observer: count})
	if !slices.Equal(count.trials, []int{3, 3, 1, 1}) {
		t.Errorf("programs of %v trials", count.trials)
	}
}

// A trial that stops early does not change the bits of others.
func TestEarlyStopInAProgram(t *testing.T) {
	modeltest.EarlyStop(t, &xla.Trainer{Device: goBackend(t)})
}
