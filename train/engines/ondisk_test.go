// Bags that stay on disk train like bags in memory.

package engines_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/compile/native"
	"github.com/miplc/miplc/compile/native/kernel"
	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/data/bagfile"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/train"
	"github.com/miplc/miplc/train/engines"
)

// slides writes a table of 20 bags in one HDF5 file.
func slides(t *testing.T) (table, file string) {
	t.Helper()
	dir := t.TempDir()
	table, file = filepath.Join(dir, "slides.csv"), filepath.Join(dir, "slides.h5")
	content, err := os.ReadFile("../../data/hdf5/testdata/groups.h5")
	if err != nil {
		t.Fatal(err)
	}
	text := "bag,label,candidates,file\n"
	for i := range 20 {
		text += fmt.Sprintf("slide-%02d,%d,0 1,slides.h5#bags/slide-%02d\n", i, i%2, i)
	}
	if err := os.WriteFile(file, content, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(table, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return table, file
}

// trialOn trains on 14 of the bags for seven epochs.
func trialOn(t *testing.T, set *data.Dataset, overrides ...string) *train.Trial {
	t.Helper()
	spec, err := language.Load("demipl", append([]string{"train.epochs=7", "train.checkpoint=1"}, overrides...)...)
	if err != nil {
		t.Fatal(err)
	}
	p, err := compile.Compile(spec, compile.Signature{Instance: set.Shape, Classes: set.Classes})
	if err != nil {
		t.Fatal(err)
	}
	split, err := data.RandomSplit(set.Bags(), set.TrueLists(), data.SplitSettings{Train: 0.7, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	return &train.Trial{Program: p, Data: set, Split: split}
}

func open(t *testing.T, table string) *data.Dataset {
	t.Helper()
	set, err := bagfile.Open(table)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

var nativeTrainer = &train.StepTrainer{New: func(p *compile.Program) (train.Engine, error) {
	return engines.NewNative(p, native.Options{Kernels: kernel.Best(), Threads: 1}), nil
}}

// loaded returns a copy of a dataset on disk that is in memory.
func loaded(t *testing.T, set *data.Dataset) *data.Dataset {
	t.Helper()
	all, err := set.All()
	if err != nil {
		t.Fatal(err)
	}
	inMemory := *set
	inMemory.Instances, inMemory.Store = all, nil
	return &inMemory
}

// Training gives the same result on disk and in memory, except for the predictions of the training
// bags.
func TestOnDisk(t *testing.T) {
	table, _ := slides(t)
	set := open(t, table)
	inMemory := loaded(t, set)
	a, err := train.TrainOne(context.Background(), nativeTrainer, trialOn(t, set), train.Options{})
	if err != nil {
		t.Fatal(err)
	}
	b, err := train.TrainOne(context.Background(), nativeTrainer, trialOn(t, inMemory), train.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(a.State, b.State) || !reflect.DeepEqual(a.Weights, b.Weights) ||
		*a.Measures.Accuracy("test") != *b.Measures.Accuracy("test") {
		t.Errorf("%+v on disk, %+v in memory", a, b)
	}
	for i, m := range a.Metrics {
		other := b.Metrics[i]
		if *m.Measures.Accuracy("test") != *other.Measures.Accuracy("test") || m.Loss != other.Loss {
			t.Errorf("epoch %d: %+v on disk, %+v in memory", m.Epoch, m, other)
		}
		if !m.FromSteps || other.FromSteps || m.Measures.Accuracy("train") == nil {
			t.Errorf("epoch %d: %+v on disk, %+v in memory", m.Epoch, m, other)
		}
	}
}

// watched counts the engines that exist at the same time.
type watched struct {
	train.Engine
	now *atomic.Int32
}

func (w watched) Close() error {
	w.now.Add(-1)
	return w.Engine.Close()
}

// Trials whose bags stay on disk train one after the other, so that only one large bag is in memory.
func TestOnDiskOneAtATime(t *testing.T) {
	table, _ := slides(t)
	set := open(t, table)
	var now, most atomic.Int32
	by := &train.StepTrainer{New: func(p *compile.Program) (train.Engine, error) {
		for n := now.Add(1); n > most.Load(); {
			most.Store(n)
		}
		return watched{engines.NewNative(p, native.Options{Kernels: kernel.Best(), Threads: 1}), &now}, nil
	}}
	trials := []*train.Trial{trialOn(t, set), trialOn(t, set), trialOn(t, set)}
	by.Train(t.Context(), trials, train.Options{Parallel: 3}, func(_ int, out train.Outcome) {
		if out.Err != nil {
			t.Error(out.Err)
		}
	})
	if most.Load() != 1 {
		t.Errorf("%d trials train at the same time", most.Load())
	}
}

// On disk, the attention scores of the training instances are those of the training steps.
func TestOnDiskAttention(t *testing.T) {
	table, _ := slides(t)
	for _, override := range []string{"train.sampling=shuffle", "train.sampling=balanced"} {
		trial := trialOn(t, open(t, table), override)
		r, err := train.TrainOne(context.Background(), nativeTrainer, trial, train.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range r.Attention {
			if len(s.Train.Unknown) != 2*len(trial.Split.Train) || len(s.Test.Unknown) != 2*len(trial.Split.Test) {
				t.Errorf("%s, epoch %d: %d training and %d test attention scores, want two per bag", override, s.Epoch,
					len(s.Train.Unknown), len(s.Test.Unknown))
			}
		}
		if len(r.Attention) != 3 || r.Detail == nil || r.Measures.Accuracy("train") == nil {
			t.Errorf("%s: %+v", override, r)
		}
	}
}

// With data.sample, training sees one of the two instances of a bag, on disk as in memory, and
// resumes to the same bits. Predictions are of both instances.
func TestSample(t *testing.T) {
	table, _ := slides(t)
	set := open(t, table)
	inMemory := loaded(t, set)
	run := func(set *data.Dataset, until int, dir string, overrides ...string) *train.Report {
		t.Helper()
		trial := trialOn(t, set, overrides...)
		trial.Dir, trial.Until = dir, until
		r, err := train.TrainOne(context.Background(), nativeTrainer, trial, train.Options{Resume: true})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	all, one := run(set, 0, ""), run(set, 0, "", "data.sample=1")
	if many := run(set, 0, "", "data.sample=2"); !reflect.DeepEqual(many.State, all.State) {
		t.Error("a sample of all instances trains a different model")
	}
	if reflect.DeepEqual(one.State, all.State) {
		t.Error("a sample of one instance trains the same model")
	}
	if other := run(set, 0, "", "data.sample=1", "train.seed=2"); reflect.DeepEqual(one.State, other.State) {
		t.Error("another seed draws the same instances")
	}
	memory := run(inMemory, 0, "", "data.sample=1")
	if !reflect.DeepEqual(one.State, memory.State) {
		t.Error("samples in memory train a different model")
	}
	if n := len(memory.Attention[0].Train.Unknown); n != 2*14 {
		t.Errorf("%d attention scores of 14 training bags in memory", n)
	}
	dir := filepath.Join(t.TempDir(), "run")
	run(set, 3, dir, "data.sample=1")
	if again := run(set, 0, dir, "data.sample=1"); again.Resumed != 3 || !reflect.DeepEqual(again.State, one.State) {
		t.Errorf("resumed after epoch %d, not to the same parameters", again.Resumed)
	}
}

// A file that vanishes ends the training with an error that names it. The epochs before are
// kept, and once the file is back, the training continues to the same result.
func TestOnDiskFileVanishes(t *testing.T) {
	table, file := slides(t)
	want, err := train.TrainOne(context.Background(), nativeTrainer, trialOn(t, open(t, table)), train.Options{})
	if err != nil {
		t.Fatal(err)
	}
	trial := trialOn(t, open(t, table))
	trial.Dir = filepath.Join(t.TempDir(), "run")
	afterEpoch := epochObserver{do: func(m train.Metrics) {
		if m.Epoch == 3 {
			if err := os.Rename(file, file+".aside"); err != nil {
				t.Error(err)
			}
		}
	}}
	_, err = train.TrainOne(context.Background(), nativeTrainer, trial, train.Options{Observer: afterEpoch})
	if err == nil || !strings.Contains(err.Error(), "slides.h5: bag ") ||
		!strings.Contains(err.Error(), "there is no such file") || !strings.Contains(err.Error(), "epoch 4") {
		t.Fatalf("after the file was removed: %v", err)
	}
	if err := os.Rename(file+".aside", file); err != nil {
		t.Fatal(err)
	}
	again := trialOn(t, open(t, table))
	again.Dir = trial.Dir
	got, err := train.TrainOne(context.Background(), nativeTrainer, again, train.Options{Resume: true})
	if err != nil {
		t.Fatal(err)
	}
	if got.Resumed < 1 || got.Resumed > 3 || // short epochs share a checkpoint
		!reflect.DeepEqual(got.State, want.State) {
		t.Errorf("resumed after epoch %d; the state differs from that without the interruption", got.Resumed)
	}
}
