package xla_test

import (
	"context"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/train"
	"github.com/miplc/miplc/train/oracle"
	"github.com/miplc/miplc/train/xla"
)

// mixedJobs are jobs that differ in everything a job can differ in.
func mixedJobs(t *testing.T, o train.Options) []xla.Job {
	t.Helper()
	other, err := data.RandomSplit(o.Data.Bags(), 0.5, 2)
	if err != nil {
		t.Fatal(err)
	}
	sets := append([]uint8(nil), o.Data.Candidates...)
	for i, label := range o.Data.Labels { // every bag gets one more candidate
		sets[i*o.Data.Classes+(label+1)%o.Data.Classes] = 1
	}
	return []xla.Job{
		{Name: "plain", Split: o.Split, Seed: 1},
		{Name: "seed", Split: o.Split, Seed: 7},
		{Name: "rate", Split: o.Split, Seed: 1, LR: 3e-3},
		{Name: "split", Split: other, Seed: 1},
		{Name: "no attention loss", Split: o.Split, Seed: 1, TermWeights: map[string]float64{"attention": 0}},
		{Name: "candidates", Split: o.Split, Seed: 3, Candidates: sets},
	}
}

// alone runs a job by itself through the ordinary loop.
func alone(t *testing.T, o train.Options, j xla.Job) *train.Report {
	t.Helper()
	spec := *o.Program.Spec
	spec.Train.Seed.V = int(j.Seed)
	if j.LR != 0 {
		spec.Train.LR.V = j.LR
	}
	losses := append(spec.Loss[:0:0], spec.Loss...)
	for i := range losses {
		if w, ok := j.TermWeights[losses[i].Kind.V]; ok {
			losses[i].Weight.V = w
		}
	}
	spec.Loss = losses
	p, err := compile.Compile(&spec, o.Program.Signature)
	if err != nil {
		t.Fatal(err)
	}
	o.Program, o.Split = p, j.Split
	if j.Candidates != nil {
		own := *o.Data
		own.Candidates = j.Candidates
		o.Data = &own
	}
	return run(t, o)
}

// Each of several jobs in one program ends as it does alone on the oracle; at
// one bag a step, at batches whose last one is not full, and in calls of few
// steps.
func TestJobsMatchSingleRuns(t *testing.T) {
	b := goBackend(t)
	for _, c := range []struct{ batch, feed int }{{1, 0}, {16, 0}, {4, 20000}} {
		o := options(t, 3, c.batch)
		jobs := mixedJobs(t, o)
		got, err := xla.RunJobs(context.Background(), b, o.Program, o.Data, jobs, xla.JobsOptions{MaxFeed: c.feed})
		if err != nil {
			t.Fatal(err)
		}
		for i, j := range jobs {
			t.Run(j.Name, func(t *testing.T) {
				if got[i].Err != nil {
					t.Fatal(got[i].Err)
				}
				want := alone(t, o, j)
				sameRun(t, got[i].Report, want, 1e-5)
				sameSummary(t, got[i].Report, want)
			})
		}
	}
}

func sameSummary(t *testing.T, got, want *train.Report) {
	t.Helper()
	if !reflect.DeepEqual(got.Confusion, want.Confusion) || got.ConfusionOf != want.ConfusionOf {
		t.Errorf("confusion %v of %s, want %v of %s", got.Confusion, got.ConfusionOf, want.Confusion, want.ConfusionOf)
	}
	for i, w := range want.Trajectories {
		g := got.Trajectories[i]
		if g.Bag != w.Bag || g.Label != w.Label || !reflect.DeepEqual(g.Candidates, w.Candidates) || len(g.Weights) != len(w.Weights) {
			t.Errorf("trajectory %d is of bag %d with %d points, want bag %d with %d", i, g.Bag, len(g.Weights), w.Bag, len(w.Weights))
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

// imageSpec is a small network on images of 8 by 8, with the parts that the
// paper's has.
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

// Convolutions have the job axis too.
func TestImageJobsMatchSingleRuns(t *testing.T) {
	b := goBackend(t)
	o := data.DefaultPrototypes
	o.Bags, o.Features = 20, 64
	d, err := data.Prototypes(o)
	if err != nil {
		t.Fatal(err)
	}
	if d, err = d.Reshape([]int{1, 8, 8}); err != nil {
		t.Fatal(err)
	}
	s, err := language.Parse("images.yaml", []byte(imageSpec), language.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := compile.Compile(s, compile.Signature{Instance: d.Shape, Classes: d.Classes})
	if err != nil {
		t.Fatal(err)
	}
	split, err := data.RandomSplit(d.Bags(), 0.7, 1)
	if err != nil {
		t.Fatal(err)
	}
	single := train.Options{Program: p, Data: d, Split: split,
		NewEngine: func(p *compile.Program) (train.Engine, error) { return oracle.New(p) }}
	jobs := []xla.Job{{Split: split, Seed: 1}, {Split: split, Seed: 2}, {Split: split, Seed: 1, LR: 0.002}}
	got, err := xla.RunJobs(context.Background(), b, p, d, jobs, xla.JobsOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i, j := range jobs {
		if got[i].Err != nil {
			t.Fatal(got[i].Err)
		}
		sameRun(t, got[i].Report, alone(t, single, j), 1e-5)
	}
}

// A job with a rate that blows up ends alone and says where; the others stay
// what they are without it.
func TestJobEndsAlone(t *testing.T) {
	b := goBackend(t)
	o := options(t, 3, 1)
	jobs := []xla.Job{{Split: o.Split, Seed: 1}, {Split: o.Split, Seed: 1, LR: 1e30}}
	got, err := xla.RunJobs(context.Background(), b, o.Program, o.Data, jobs, xla.JobsOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var bad *train.NonFiniteError
	if !errors.As(got[1].Err, &bad) || bad.Epoch != 1 || len(bad.Bags) != 1 || got[1].Report != nil {
		t.Errorf("the job with the rate 1e30 ended with %v", got[1].Err)
	}
	if got[0].Err != nil {
		t.Fatal(got[0].Err)
	}
	sameRun(t, got[0].Report, run(t, o), 1e-5)
}

// Two calls give the same bits.
func TestJobsRepeat(t *testing.T) {
	b := goBackend(t)
	o := options(t, 2, 4)
	var params [2]map[string][]float32
	for i := range params {
		got, err := xla.RunJobs(context.Background(), b, o.Program, o.Data, mixedJobs(t, o), xla.JobsOptions{})
		if err != nil {
			t.Fatal(err)
		}
		params[i] = got[3].Report.State.Params
	}
	for name, v := range params[0] {
		for i := range v {
			if math.Float32bits(v[i]) != math.Float32bits(params[1][name][i]) {
				t.Fatalf("%s[%d] differs between two runs", name, i)
			}
		}
	}
}

func TestJobsRefused(t *testing.T) {
	b := goBackend(t)
	o := options(t, 1, 1)
	for want, jobs := range map[string][]xla.Job{
		"no jobs":               nil,
		"left for training":     {{Split: &data.Split{Test: []int{1}}}},
		"names bag 61":          {{Split: &data.Split{Train: []int{60}}}},
		"no term \"attentoin\"": {{Split: o.Split, TermWeights: map[string]float64{"attentoin": 1}}},
		"candidate marks":       {{Split: o.Split, Candidates: []uint8{1}}},
	} {
		if _, err := xla.RunJobs(context.Background(), b, o.Program, o.Data, jobs, xla.JobsOptions{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := xla.RunJobs(ctx, b, o.Program, o.Data, []xla.Job{{Split: o.Split}}, xla.JobsOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("after cancel: %v", err)
	}
}
