// Whole trainings in every engine.

package engines_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/miplc/miplc/data/generate"
	"github.com/miplc/miplc/internal/testkit/enginetest"
	"github.com/miplc/miplc/internal/testkit/modeltest"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/train"
)

// smallImages is an image model with the layers of the shipped ones that is small enough for the
// interpreter.
const smallImages = `
name: images
data:
  set: generated:prototypes
  generated: {bags: 90, classes: 3, features: 64, positives: 0.5, min_size: 2, max_size: 5, noise: 0.1, seed: 3}
  shape: [1, 8, 8]
model:
  blocks:
    - conv2d: {channels: 4, kernel: 3}
    - relu
    - maxpool2d: 2
    - flatten
    - dense: 16
    - dropout: 0.2
    - relu
    - attention
    - pool: attention
    - classifier
train: {lr: 0.1, epochs: 15, batch: 4}
`

// options returns a whole training of a spec on the dataset that the spec generates.
func options(t testing.TB, text string) *train.Trial {
	t.Helper()
	s, err := language.Parse("training.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	g := s.Data.Generated
	d, err := generate.Prototypes(generate.PrototypeOptions{Bags: g.Bags.V, Classes: g.Classes.V, Features: g.Features.V,
		Candidates: g.Candidates.V, Positives: g.Positives.V, MinSize: g.MinSize.V, MaxSize: g.MaxSize.V, Noise: g.Noise.V,
		Seed: uint64(g.Seed.V)})
	if err != nil {
		t.Fatal(err)
	}
	return modeltest.Trial(t, s, d)
}

func (m maker) train(t testing.TB, o *train.Trial) *train.Report {
	t.Helper()
	by := m.by
	if by == nil {
		by = &train.StepTrainer{New: m.make}
	}
	r, err := train.TrainOne(context.Background(), by, o, train.Options{})
	if err != nil {
		t.Fatalf("%s: %v", m.name, err)
	}
	return r
}

// training is a whole training.
type training struct {
	name, text string
	learns     bool    // the interpreter classifies most training bags correctly
	tolerance  float64 // of the loss of each epoch; 0: in many epochs, the last digits grow to other numbers
}

// trainings lists whole trainings with shuffling, masks, normalisation, label weights, schedules and evaluation, and
// with the settings of the loop around the updates.
func trainings() []training {
	list := []training{
		// uses only the number of the instances of a bag, which tells nothing about its class here
		{"counts", "name: counts\ndata: {set: generated:prototypes, generated: {bags: 60, classes: 3, features: 4, " +
			"min_size: 2, max_size: 9, seed: 1}}\nmodel: {params: {C: [1, k], b: [k]}, let: {p: " +
			"\"softmax(matmul(bag_count(X), C) + b)\"}}\nloss: [disambiguation]\ntrain: {epochs: 3, batch: 4}\n", false, 0},
		{"features", "extends: quickstart\nname: features\ndata: {generated: {bags: 150}}\n" +
			"train: {epochs: 20, batch: 1}\n", true, 0},
		{"features in batches", "extends: quickstart\nname: batches\ndata: {generated: {bags: 150}}\n" +
			"model: {blocks: [{dense: 20}, {dropout: 0.2}, relu, attention, {pool: attention}, classifier]}\ntrain: {epochs: " +
			"40, batch: 16, lr: 0.3}\n", true, 0},
		{"images", smallImages, true, 0},
	}
	for _, settings := range []string{
		"{epochs: 4, batch: 4, optimizer: adam, lr: 0.01, clip: 1}",
		"{epochs: 3, batch: 4, sampling: balanced}",
		"{epochs: 3, batch: 4, accumulate: 4, optimizer: adam, lr: 0.01, class_weights: balanced}", // 11 steps an epoch
		"{epochs: 3, batch: 8, lr: 0.05}\nloss: [disambiguation]\nmodel: {blocks: [dense: 8, batch_norm, relu, pool: mean, " +
			"dense: 6, batch_norm, classifier]}",
		"{epochs: 3, accumulate: 5, class_weights: [1, 3, 2, 1, 0.5]}",
		"{epochs: 3, batch: 1, sampling: balanced}",
		// the loss stays
		"{epochs: 5, batch: 4, warmup: 1, schedule: plateau, decay_patience: 0, lr: 1e-6}\nweights: {schedule: averaging}",
	} {
		text := "extends: quickstart\nname: features\ndata: {generated: {bags: 60}}\ntrain: " + settings + "\n"
		list = append(list, training{settings, text, false, 1e-4})
	}
	return list
}

// Every trainer agrees with the interpreter, and short trainings continue after an interruption with the same bits. In
// long ones engines may differ in the last digits, but their numbers of correct bags on the same split differ by at
// most two.
func TestWholeTrainings(t *testing.T) {
	t.Parallel()
	for _, c := range trainings() {
		o := options(t, c.text)
		want := reference().train(t, o)
		if c.learns && *want.Measures.Accuracy("train") < 0.6 {
			t.Errorf("%s: the interpreter learns too little to compare: %v", c.name, *want.Measures.Accuracy("train"))
		}
		for _, m := range compared(t) {
			got := m.train(t, o)
			for part, bags := range map[string]int{"train": len(o.Split.Train), "test": len(o.Split.Test)} {
				d := math.Abs(*got.Measures.Accuracy(part)-*want.Measures.Accuracy(part)) * float64(bags)
				if !(d < 2.5) {
					t.Errorf("%s: %s classifies %.0f %s bags more or fewer correctly", c.name, m.name, d, part)
				}
			}
			for i, w := range want.Metrics {
				g := got.Metrics[i]
				if g.LR != w.LR || c.tolerance > 0 && !(math.Abs(g.Loss-w.Loss) <= enginetest.Tolerance(c.tolerance)) {
					t.Errorf("%s: %s has loss %v at rate %v in epoch %d, want %v at %v", c.name, m.name, g.Loss, g.LR, i+1, w.Loss,
						w.LR)
				}
			}
			if c.tolerance > 0 {
				sameState(t, c.name+": "+m.name+" resumed", got.State, m.interrupted(t, o, 2).State)
			}
		}
	}
}

// With the same seed and engine, two runs give the same bits: parameters and momentum, label weights
// and losses.
func TestTwoRunsGiveTheSameBits(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"extends: quickstart\nname: features\ndata: {generated: {bags: 60}}\ntrain: {epochs: 4, batch: 1}\n",
		"extends: quickstart\nname: batches\ndata: {generated: {bags: 60}}\n" +
			"model: {blocks: [{dense: 20}, {dropout: 0.3}, relu, attention, {pool: attention}, classifier]}\ntrain: {epochs: " +
			"4, batch: 16}\n",
		smallImages + "\nloss: [disambiguation]\n",
	} {
		o := options(t, text)
		for _, m := range compared(t) {
			a, b := m.train(t, o), m.train(t, o)
			sameState(t, m.name, a.State, b.State)
			sameBits(t, m.name+": label weights", a.Weights, b.Weights)
			if math.Float64bits(a.Loss) != math.Float64bits(b.Loss) {
				t.Errorf("%s: losses %v and %v", m.name, a.Loss, b.Loss)
			}
		}
	}
}

func sameState(t *testing.T, what string, a, b *train.State) {
	t.Helper()
	for name, v := range a.Params {
		sameBits(t, what+": "+name, v, b.Params[name])
	}
	for name, v := range a.Optimizer {
		sameBits(t, what+": "+name, v, b.Optimizer[name])
	}
}

func sameBits(t testing.TB, what string, a, b []float32) {
	t.Helper()
	if len(a) != len(b) || len(a) == 0 {
		t.Fatalf("%s: %d and %d numbers", what, len(a), len(b))
	}
	for i := range a {
		if math.Float32bits(a[i]) != math.Float32bits(b[i]) {
			t.Fatalf("%s[%d] is %v in one run and %v in the other", what, i, a[i], b[i])
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
	_, err := train.TrainOne(ctx, by, &own, train.Options{Observer: &stopper{epoch: epoch, stop: cancel}})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("%s: an interrupted training gives %v", m.name, err)
	}
	r, err := train.TrainOne(context.Background(), by, &own, train.Options{Resume: true})
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
