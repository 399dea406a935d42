//go:build cgo

// Results do not depend on the group.

package ort_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sync"
	"testing"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/data/generate"
	"github.com/miplc/miplc/internal/testkit/enginetest"
	"github.com/miplc/miplc/internal/testkit/traintest"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/language/specs"
	"github.com/miplc/miplc/train"
	"github.com/miplc/miplc/train/ort"
)

// trained trains a list on one core, which gives the smallest number of groups, and returns the
// outcomes and the sizes of the groups.
func trained(t *testing.T, ctx context.Context, list []*train.Trial, o train.Options) ([]train.Outcome, []int) {
	t.Helper()
	seen := &groups{Observer: o.ObserverOrSilent()}
	o.Observer = seen
	outcomes := make([]train.Outcome, len(list))
	by := ort.NewTrainer(train.EngineInfo{Engine: "ort"}, ort.Setup{Library: enginetest.Library(t)}, 1)
	by.Train(ctx, list, o, func(i int, out train.Outcome) { outcomes[i] = out })
	return outcomes, seen.sizes
}

// groups records the number of trials in each group.
type groups struct {
	train.Observer
	mu    sync.Mutex
	sizes []int
}

func (g *groups) Begin(p train.Plan) {
	g.mu.Lock()
	g.sizes = append(g.sizes, p.Trials)
	g.mu.Unlock()
	g.Observer.Begin(p)
}

func report(t *testing.T, out train.Outcome) *train.Report {
	t.Helper()
	if out.Err != nil {
		t.Fatal(out.Err)
	}
	return out.Report
}

// sameBits compares all results of two trainings of a trial.
func sameBits(t *testing.T, what string, got, want *train.Report) {
	t.Helper()
	if !reflect.DeepEqual(got.State, want.State) {
		t.Errorf("%s: the state differs", what)
	}
	if !slices.Equal(got.Weights, want.Weights) || !reflect.DeepEqual(got.Attention, want.Attention) ||
		!reflect.DeepEqual(got.Detail.Confusion, want.Detail.Confusion) {
		t.Errorf("%s: label weights, attention scores or predictions differ", what)
	}
	for i, m := range want.Metrics {
		if g := got.Metrics[i]; g.Loss != m.Loss || !reflect.DeepEqual(g.Terms, m.Terms) {
			t.Errorf("%s: epoch %d has the loss %v, want %v", what, i+1, g.Loss, m.Loss)
		}
	}
}

// many are trials that differ in seed, rate, split and weights of the loss, on bags of 8 to
// 15 instances.
func many(t *testing.T, n, batch int) (list []*train.Trial) {
	o := traintest.Quickstart(t, 60, 2, batch)
	for i := range n {
		trial := traintest.Vary(t, o, fmt.Sprint(i), func(s *language.Spec) {
			s.Train.Seed.V, s.Train.LR.V, s.Loss[1].Weight.V = i, 0.002*float64(1+i%7), 0.001*float64(i%3)
		})
		var err error
		if trial.Split, err = data.RandomSplit(o.Data.Bags(), nil, data.SplitSettings{Train: 0.7,
			Seed: uint64(i % 5)}); err != nil {
			t.Fatal(err)
		}
		list = append(list, trial)
	}
	return list
}

// The bits of a trial do not depend on its group: alone, among 4, 16 and 64 trials, at any index
// and with any others; with one bag per step, and with 16 and a last batch of 10.
func TestBitsDoNotDependOnTheGroup(t *testing.T) {
	for _, batch := range []int{1, 16} {
		list := many(t, 64, batch)
		all, sizes := trained(t, context.Background(), list, train.Options{})
		t.Logf("batches of %d: groups of %v", batch, sizes)
		if batch == 1 && !slices.Equal(sizes, []int{64}) {
			t.Errorf("groups of %v, want one of 64", sizes)
		}
		for _, size := range []int{1, 3, 4, 16} {
			part := slices.Clone(list[:4*min(size, 4)])
			slices.Reverse(part)
			got, sizes := trained(t, context.Background(), part, train.Options{MaxParallel: size})
			if slices.Max(sizes) != size && size != 3 {
				t.Fatalf("groups of %v, want groups of %d", sizes, size)
			}
			for i, out := range got {
				sameBits(t, fmt.Sprintf("batches of %d, trial %s in a group of %d", batch, part[i].Name, size), report(t, out),
					report(t, all[len(part)-1-i]))
			}
		}
	}
}

// The bits of a trial of any shipped spec on features do not depend on its group, with
// batches of 16 and a last batch of 5.
func TestBitsOfShippedSpecs(t *testing.T) {
	o := generate.DefaultPrototypes
	o.Bags, o.Features = 30, 10
	bags, err := generate.Prototypes(o)
	if err != nil {
		t.Fatal(err)
	}
	grouped := 0
	for _, name := range specs.Models() {
		spec, err := language.Load(name, "train.epochs=2", "train.batch=16")
		if err != nil || len(spec.Data.Shape.V) > 0 { // a learner without training steps, or images
			continue
		}
		spec.Data.Split.Train.V = 0.7
		first, list := traintest.Trial(t, spec, bags), []*train.Trial(nil)
		if first.Program.FlatSize() > 100_000 || name == "agopmipl" { // trains alone: a step of it fills the cache
			continue
		}
		for seed := range 11 {
			list = append(list, traintest.Vary(t, first, fmt.Sprint(seed), traintest.Seed(seed)))
		}
		all, sizes := trained(t, context.Background(), list, train.Options{})
		if len(sizes) == len(list) {
			t.Errorf("%s: no groups", name)
		}
		grouped++
		for _, i := range []int{0, 4, 10} {
			alone, _ := trained(t, context.Background(), list[i:i+1], train.Options{})
			sameBits(t, fmt.Sprintf("%s, seed %d", name, i), report(t, all[i]), report(t, alone[0]))
		}
	}
	if grouped < 15 {
		t.Errorf("%d specs were trained", grouped)
	}
}

// Trials that differ in all possible settings agree with single trainings on the float64
// interpreter.
func TestGroupsFollowTheOracle(t *testing.T) {
	for _, batch := range []int{1, 16, 4} {
		list := traintest.Mixed(t, traintest.Quickstart(t, 60, 3, batch))
		got, _ := trained(t, context.Background(), list, train.Options{})
		for i, trial := range list {
			by := &train.StepTrainer{New: func(p *compile.Program) (train.Engine, error) { return train.NewOracle(p) }}
			want, err := train.One(context.Background(), by, trial, train.Options{})
			if err != nil {
				t.Fatal(err)
			}
			near(t, trial.Name, report(t, got[i]), want)
		}
	}
}

func near(t *testing.T, name string, got, want *train.Report) {
	t.Helper()
	for i, m := range want.Metrics {
		g := got.Metrics[i]
		if math.Abs(g.Loss-m.Loss) > 1e-5*m.Loss || *g.Measures.Accuracy("test") != *m.Measures.Accuracy("test") ||
			*g.Measures.Accuracy("train") != *m.Measures.Accuracy("train") || *g.Disambiguation != *m.Disambiguation {
			t.Errorf("%s, epoch %d: loss %v, accuracies %v and %v; want %v, %v and %v", name, i+1,
				g.Loss, *g.Measures.Accuracy("train"), *g.Measures.Accuracy("test"), m.Loss, *m.Measures.Accuracy("train"),
				*m.Measures.Accuracy("test"))
		}
	}
	for param, w := range want.State.Params {
		for i, v := range got.State.Params[param] {
			if math.Abs(float64(v-w[i])) > 1e-5 {
				t.Errorf("%s: %s[%d] is %v, want %v", name, param, i, v, w[i])
				break
			}
		}
	}
	if !reflect.DeepEqual(got.Detail.Confusion, want.Detail.Confusion) {
		t.Errorf("%s: confusion %v, want %v", name, got.Detail.Confusion, want.Detail.Confusion)
	}
}

// A trial whose learning rate is too large fails with the place of the error and does not affect
// the others.
func TestTrialOfAGroupEndsAlone(t *testing.T) {
	o := traintest.Quickstart(t, 60, 3, 1)
	plain := traintest.Vary(t, o, "plain", nil)
	got, sizes := trained(t, context.Background(), []*train.Trial{traintest.Vary(t, o, "wild", traintest.Rate(1e30)),
		plain}, train.Options{})
	if !slices.Equal(sizes, []int{2}) {
		t.Errorf("groups of %v", sizes)
	}
	var bad *train.NonFiniteError
	if !errors.As(got[0].Err, &bad) || bad.Epoch != 1 || len(bad.Bags) != 1 || got[0].Report != nil {
		t.Errorf("the trial with the rate 1e30 ended with %v", got[0].Err)
	}
	alone, _ := trained(t, context.Background(), []*train.Trial{plain}, train.Options{})
	sameBits(t, "beside a trial that ends", report(t, got[1]), report(t, alone[0]))
}

// stop ends the training after some epochs, all trials counted.
type stop struct {
	train.Silent
	epochs int
	cancel func()
}

func (s *stop) Epoch(train.Metrics, train.Progress) {
	if s.epochs--; s.epochs == 0 {
		s.cancel()
	}
}

// Trials that are interrupted several times and resumed, each time in another group, have the
// bits of uninterrupted ones.
func TestGroupsResumeInAnyCompany(t *testing.T) {
	kept := func(dir string) []*train.Trial {
		list := traintest.Mixed(t, traintest.Quickstart(t, 60, 4, 4))
		list = append(list, traintest.Vary(t, list[0], "wild", traintest.Rate(1e30)))
		for i, trial := range list {
			trial.Dir = filepath.Join(dir, fmt.Sprint(i))
		}
		return list
	}
	whole, broken := t.TempDir(), t.TempDir()
	want, _ := trained(t, context.Background(), kept(whole), train.Options{})
	for i, epochs := range []int{3, 4, 2} {
		ctx, cancel := context.WithCancel(context.Background())
		part := kept(broken)[:6-i]
		trained(t, ctx, part, train.Options{Resume: true, Observer: &stop{epochs: epochs, cancel: cancel}})
		cancel()
	}
	got, _ := trained(t, context.Background(), kept(broken), train.Options{Resume: true})
	resumed := 0
	for i := range want {
		if (want[i].Err == nil) != (got[i].Err == nil) {
			t.Fatalf("trial %d: uninterrupted %v, resumed %v", i, want[i].Err, got[i].Err)
		}
		if want[i].Err != nil {
			continue
		}
		resumed += got[i].Report.Resumed
		x, err1 := os.ReadFile(filepath.Join(whole, fmt.Sprint(i), train.CheckpointFile))
		y, err2 := os.ReadFile(filepath.Join(broken, fmt.Sprint(i), train.CheckpointFile))
		if err := errors.Join(err1, err2); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(x, y) {
			t.Errorf("trial %d: the last checkpoint of the resumed training differs", i)
		}
	}
	if resumed == 0 {
		t.Error("nothing was resumed")
	}
}

// The observer of a single trial gets every step and every evaluated batch.
func TestObserverOfATrialAlone(t *testing.T) {
	count := &events{}
	o := traintest.Quickstart(t, 60, 2, 4)
	out, _ := trained(t, context.Background(), []*train.Trial{o}, train.Options{Observer: count})
	report(t, out[0])
	if count.steps != 2*11 || count.batches != 2*(11+5) || count.epochs != 2 {
		t.Errorf("%d steps, %d batches, %d epochs", count.steps, count.batches, count.epochs)
	}
}

type events struct {
	train.Silent
	steps, batches, epochs int
}

func (e *events) Step(p train.Progress) {
	if p.Evaluating {
		e.batches++
	} else {
		e.steps++
	}
}

func (e *events) Epoch(train.Metrics, train.Progress) { e.epochs++ }

// Trials with dropout masks, images or bags of very different sizes are not grouped.
func TestTrialsThatTrainAlone(t *testing.T) {
	o := traintest.Quickstart(t, 60, 2, 1)
	skewed := traintest.Vary(t, o, "skewed", nil)
	set := *o.Data
	long := set.Offsets[set.Bags()] - set.Offsets[1] // all but the first bag become two
	set.Offsets = []int{0, set.Offsets[1], set.Offsets[1] + long - 1, set.Offsets[1] + long}
	set.Candidates, set.Labels = set.Candidates[:3*set.Classes], set.Labels[:3]
	skewed.Data, skewed.Split = &set, &data.Split{Train: []int{0, 1}, Test: []int{2}}
	got, sizes := trained(t, context.Background(), []*train.Trial{skewed, traintest.Vary(t, skewed, "seed",
		traintest.Seed(2))}, train.Options{})
	if !slices.Equal(sizes, []int{1, 1}) {
		t.Errorf("bags of 1 to %d instances: groups of %v", long, sizes)
	}
	for _, out := range got {
		report(t, out)
	}
}

// BenchmarkGroup trains two epochs of 42 bags with evaluation in groups of different sizes.
func BenchmarkGroup(b *testing.B) {
	library := enginetest.Library(b)
	for _, n := range []int{1, 8, 64} {
		b.Run(fmt.Sprintf("trials=%d", n), func(b *testing.B) {
			o := traintest.Quickstart(b, 300, 10, 1)
			list := make([]*train.Trial, n)
			for i := range list {
				list[i] = traintest.Vary(b, o, fmt.Sprint(i), func(s *language.Spec) {
					s.Train.Seed.V, s.Train.EvalEvery.V = i, 1000
				})
				list[i].Dir, list[i].Log = b.TempDir()+fmt.Sprint(i), b.TempDir()+fmt.Sprint(i, ".jsonl")
			}
			by := ort.NewTrainer(train.EngineInfo{Engine: "ort"}, ort.Setup{Library: library}, 1)
			for b.Loop() {
				by.Train(context.Background(), list, train.Options{}, func(_ int, out train.Outcome) {
					if out.Err != nil {
						b.Fatal(out.Err)
					}
				})
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*n*10*210), "µs/step")
		})
	}
}

// A trial that stops early does not change the bits of others.
func TestEarlyStopInAGroup(t *testing.T) {
	traintest.EarlyStop(t, ort.NewTrainer(train.EngineInfo{Engine: "ort"}, ort.Setup{Library: enginetest.Library(t)},
		1))
}
