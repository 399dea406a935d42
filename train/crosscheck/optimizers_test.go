// Every optimizer in every engine.

package crosscheck_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/internal/testkit/enginetest"
	"github.com/miplc/miplc/internal/testkit/traintest"
	"github.com/miplc/miplc/train"
)

// optimizers are settings of the parameter updates, which all engines compute in the same way.
var optimizers = [][]string{
	{"train.clip=0.2"},
	{"train.clip=0.2", "train.momentum=0", "train.weight_decay=0.1"},
	{"train.optimizer=adam", "train.lr=0.01", "train.weight_decay=0.01"},
	{"train.optimizer=adamw", "train.lr=0.01", "train.weight_decay=0.1", "train.beta1=0.8", "train.clip=0.5"},
	{"train.optimizer=rmsprop", "train.lr=0.003"},
	{"train.accumulate=3", "train.optimizer=adam", "train.lr=0.01", "train.clip=0.2"},
	{"train.accumulate=2", "train.class_weights=balanced"},
	{"train.accumulate=2", "train.clip=0.2", "train.batch=2", normalised, "loss=[disambiguation]"},
	{"train.optimizer=rmsprop", "train.lr=0.003", "train.momentum=0.9", "train.weight_decay=0.01", "train.alpha=0.9"},
}

// normalised has batch normalisations of instances and of bags.
const normalised = "model.blocks=[dense: 8, batch_norm, relu, pool: mean, dense: 6, batch_norm: 0.3, classifier]"

// position returns the position of step, counted from 0, among the updates of a program.
func position(p *compile.Program, step int) compile.Position {
	n := max(1, p.Spec.Train.Accumulate.V)
	return compile.Position{Update: step/n + 1, Steps: n, Pending: step%n < n-1}
}

// Every update rule agrees with the interpreter over twenty steps, with one bag and with three.
func TestOptimizers(t *testing.T) {
	t.Parallel()
	list, w := engines(t), map[string]map[string]float64{}
	for i, set := range optimizers {
		p := traintest.Shipped(t, "quickstart", set...)
		name := fmt.Sprint("quickstart ", set)
		compareTrajectories(t, name, p, list, w, 1e-5, 20, uint64(i), [][]int{{4}, {2}, {5}})
		p.Spec.Train.Batch.V = 3
		compareTrajectories(t, name+", three bags", p, list, w, 1e-5, 20, uint64(i), [][]int{{4, 1, 3}, {2, 5, 1}, {3}})
	}
	if !light {
		p := traintest.Shipped(t, "demipl-image", "train.clip=0.2") // computed bag by bag, with one update
		p.Spec.Train.Batch.V = 3
		compareTrajectories(t, "images", p, list, w, 1e-5, 3, 1, [][]int{{2, 1, 3}})
	}
	logWorst(t, w)
}

// trainings are settings of the loop around the updates.
var trainings = []string{
	"{epochs: 4, batch: 4, optimizer: adam, lr: 0.01, clip: 1}",
	"{epochs: 3, batch: 4, sampling: balanced}",
	"{epochs: 3, batch: 4, accumulate: 4, optimizer: adam, lr: 0.01, class_weights: balanced}", // 11 steps an epoch
	"{epochs: 3, batch: 8, lr: 0.05}\nloss: [disambiguation]\nmodel: {blocks: [dense: 8, batch_norm, relu, pool: mean, " +
		"dense: 6, batch_norm, classifier]}",
	"{epochs: 3, accumulate: 5, class_weights: [1, 3, 2, 1, 0.5]}",
	"{epochs: 3, batch: 1, sampling: balanced}",
	// the loss stays
	"{epochs: 5, batch: 4, warmup: 1, schedule: plateau, decay_patience: 0, lr: 1e-6}\nweights: {schedule: averaging}",
}

// Whole trainings of every trainer agree with the interpreter, and continue after an interruption
// with the same bits.
func TestTrainingsWithOptimizers(t *testing.T) {
	t.Parallel()
	for _, settings := range trainings {
		o := options(t, "extends: quickstart\nname: features\ndata: {generated: {bags: 60}}\ntrain: "+settings+"\n")
		want := reference().train(t, o)
		for _, m := range engines(t) {
			got := m.train(t, o)
			for i, w := range want.Metrics {
				if g := got.Metrics[i]; g.LR != w.LR || math.Abs(g.Loss-w.Loss) > enginetest.Tolerance(1e-4) {
					t.Errorf("%s: %s has loss %v at rate %v in epoch %d, want %v at %v", settings, m.name, g.Loss, g.LR, i+1, w.Loss,
						w.LR)
				}
			}
			resumed := m.interrupted(t, o, 2)
			sameState(t, settings+": "+m.name+" resumed", got.State, resumed.State)
		}
	}
}

// interrupted trains a trial, interrupts it after an epoch and resumes it.
func (m maker) interrupted(t *testing.T, o *train.Trial, epoch int) *train.Report {
	t.Helper()
	own := *o
	own.Dir, own.CheckpointInterval = t.TempDir(), time.Hour // the epoch in which the context ends is kept
	by := m.by
	if by == nil {
		by = &train.StepTrainer{New: m.make}
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	_, err := train.One(ctx, by, &own, train.Options{Observer: &stopper{epoch: epoch, stop: cancel}})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("%s: an interrupted training gives %v", m.name, err)
	}
	r, err := train.One(context.Background(), by, &own, train.Options{Resume: true})
	if err != nil || r.Resumed < epoch {
		t.Fatalf("%s: %v when resumed", m.name, err)
	}
	return r
}

// stopper ends a training after an epoch.
type stopper struct {
	train.Silent
	epoch int
	stop  func()
}

func (s *stopper) Epoch(m train.Metrics, _ train.Progress) {
	if m.Epoch == s.epoch {
		s.stop()
	}
}
