// Whole trainings in every engine.

package crosscheck_test

import (
	"context"
	"math"
	"testing"

	"github.com/miplc/miplc/data/generate"
	"github.com/miplc/miplc/internal/testkit/traintest"
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

// counts is the model that uses the number of the instances of a bag only, which tells nothing about its class here.
const counts = "counts"

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
	return traintest.Trial(t, s, d)
}

func (m maker) train(t testing.TB, o *train.Trial) *train.Report {
	t.Helper()
	by := m.by
	if by == nil {
		by = &train.StepTrainer{New: m.make}
	}
	r, err := train.One(context.Background(), by, o, train.Options{})
	if err != nil {
		t.Fatalf("%s: %v", m.name, err)
	}
	return r
}

// Whole trainings with shuffling, masks, normalisation, label weights, schedules and evaluation.
// Engines may differ in the last digits, but their numbers of correct bags on the same split
// differ by at most two.
func TestWholeTrainings(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, text string }{
		{counts, "name: counts\ndata: {set: generated:prototypes, generated: {bags: 60, classes: 3, features: 4, min_size: " +
			"2, max_size: 9, seed: 1}}\nmodel: {params: {C: [1, k], b: [k]}, let: {p: \"softmax(matmul(bag_count(X), C) + " +
			"b)\"}}\nloss: [disambiguation]\ntrain: {epochs: 3, batch: 4}\n"},
		{"features", "extends: quickstart\nname: features\ndata: {generated: {bags: 150}}\ntrain: {epochs: 20, batch: 1}\n"},
		{"features in batches", "extends: quickstart\nname: batches\ndata: {generated: {bags: 150}}\n" +
			"model: {blocks: [{dense: 20}, {dropout: 0.2}, relu, attention, {pool: attention}, classifier]}\ntrain: {epochs: " +
			"40, batch: 16, lr: 0.3}\n"},
		{"images", smallImages},
	} {
		o := options(t, c.text)
		want := reference().train(t, o)
		trained := float64(len(o.Split.Train))
		tested := float64(len(o.Split.Test))
		t.Logf("%s: the interpreter classifies %.0f of %.0f training and %.0f of %.0f test bags correctly", c.name,
			*want.Measures.Accuracy("train")*trained, trained, *want.Measures.Accuracy("test")*tested, tested)
		if c.name != counts && *want.Measures.Accuracy("train") < 0.6 {
			t.Errorf("%s: the interpreter learns too little to compare: %v", c.name, *want.Measures.Accuracy("train"))
		}
		for _, m := range engines(t) {
			got := m.train(t, o)
			train := math.Abs(*got.Measures.Accuracy("train")-*want.Measures.Accuracy("train")) * trained
			test := math.Abs(*got.Measures.Accuracy("test")-*want.Measures.Accuracy("test")) * tested
			if !(train < 2.5 && test < 2.5) {
				t.Errorf("%s: %s classifies %.0f training and %.0f test bags more or fewer correctly", c.name, m.name, train, test)
			}
			t.Logf("%s: %s differs by %.0f training and %.0f test bags, and by %.2g in the loss of %.3g", c.name, m.name, train,
				test,
				math.Abs(got.Loss-want.Loss), want.Loss)
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
		for _, m := range engines(t) {
			a, b := m.train(t, o), m.train(t, o)
			sameState(t, m.name, a.State, b.State)
			sameBits(t, m.name+": label weights", a.Weights, b.Weights)
			if math.Float64bits(a.Loss) != math.Float64bits(b.Loss) {
				t.Errorf("%s: losses %v and %v", m.name, a.Loss, b.Loss)
			}
		}
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
