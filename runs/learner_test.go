// Runs of fitted learners, which have no epochs: their files, interruption, resumption and refused settings.

package runs

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/miplc/miplc/data/bagfile"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/testkit/enginetest"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/runs/prepare"
	"github.com/miplc/miplc/train"
	"github.com/miplc/miplc/train/engines"
)

// few are overrides that make a learner quick.
var few = []string{"data.set=generated:prototypes", "data.generated.bags=60", "learner.iterations=3"}

// A run of a fitted learner has the files of a trained run except the checkpoint. Repeating it,
// also from its spec.yaml, gives the same bits.
func TestFitLearner(t *testing.T) {
	cg := []string{"learner.solver=cg", "learner.inducing=40", "learner.subset=0", "learner.probes=2"}
	for _, c := range []struct {
		name, kind string
		set        []string
		engine     string
	}{
		{"pl-aggd-mean", "pl-aggd", nil, ""}, {"pl-aggd-maxmin", "pl-aggd", nil, ""},
		{"miplgp", "miplgp", []string{"learner.solver=inducing", "learner.inducing=40", "learner.subset=0"}, engines.ORT},
		{"miplgp", "miplgp", cg, engines.XLA},
	} {
		name, kind := c.name, c.kind
		first, second := t.TempDir(), t.TempDir()
		enginetest.Library(t)
		place := engines.Place{Engine: c.engine}
		o := Task{Dir: first, Place: place}
		s, err := one(context.Background(), load(t, name, slices.Concat(few, c.set)...), o)
		if err != nil {
			t.Fatal(err)
		}
		if s.Learner != kind || s.Device != engines.CPU || s.Epochs != 3 || s.TestAccuracy == nil || s.TrainAccuracy == nil ||
			s.Disambiguation == nil || s.Parameters == 0 {
			t.Errorf("%s: summary %+v", name, s)
		}
		if want := []string{kind, "interpreter", "onnxruntime", "onnx-go"}; !slices.Equal(s.Parity.Engines, want) ||
			!s.Parity.OK {
			t.Errorf("%s: parity of %v: %+v", name, s.Parity.Engines, s.Parity.Pairs)
		}
		for _, f := range s.Files {
			if _, err := os.Stat(filepath.Join(first, f)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		metrics := readMetrics(t, filepath.Join(first, train.MetricsFile))
		if len(metrics) != 3 || metrics[2].Measures.Accuracy("test") == nil ||
			*metrics[2].Measures.Accuracy("test") != *s.TestAccuracy || metrics[1].Measures.Accuracy("test") != nil {
			t.Errorf("%s: metrics %+v", name, metrics)
		}
		again := load(t, filepath.Join(first, SpecFile))
		o.Dir = second
		if _, err := one(context.Background(), again, o); err != nil {
			t.Fatal(err)
		}
		for _, f := range []string{ModelFile, SpecFile, PlotsFolder + "/label-weights.svg", PlotsFolder + "/confusion.svg"} {
			if !same(t, filepath.Join(first, f), filepath.Join(second, f)) {
				t.Errorf("%s: %s differs between two fits", name, f)
			}
		}
		checkFinished(t, again, o, s)
	}
}

// checkFinished checks what other commands do with a finished run.
func checkFinished(t *testing.T, spec *language.Spec, o Task, s *Summary) {
	t.Helper()
	if _, err := one(context.Background(), spec, o); err == nil || !strings.Contains(err.Error(), "finished run") {
		t.Errorf("a finished run was overwritten: %v", err)
	}
	o.Resume = true
	if again, err := one(context.Background(), spec, o); err != nil || again.ModelSHA256 != s.ModelSHA256 {
		t.Errorf("resumed when finished: %+v, %v", again, err)
	}
	if _, err := CompareRun(o.Dir, CheckOptions{}); !errors.Is(err, ErrNoCheckpoint) {
		t.Errorf("parity of a learner's folder: %v", err)
	}
	if r, err := CompareFile(ModelPath(o.Dir), CheckOptions{Sizes: []int{1, 5}}); err != nil || !r.OK {
		t.Errorf("parity of a learner's model: %+v, %v", r, err)
	}
	trials, err := prepare.Trials([]*language.Spec{spec}, bagfile.Folder{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	trainers := engines.NewTrainers(o.Place)
	defer trainers.Close()
	report, err := train.TrainOne(context.Background(), trainers, trials[0], train.Options{})
	if err != nil || *report.Measures.Accuracy("test") != *s.TestAccuracy || len(report.Trajectories) != 6 ||
		len(report.Trajectories[0].Weights) != 4 {
		t.Errorf("fitted without a folder: %+v, %v", report, err)
	}
}

// stopLearner cancels a fit after an iteration.
type stopLearner struct {
	stopAt
	after int
}

func (s *stopLearner) Epoch(m train.Metrics, _ train.Progress) {
	if m.Epoch == s.after {
		s.cancel()
	}
}

func TestInterruptedFitLeavesNothing(t *testing.T) {
	for _, after := range []int{0, 1} {
		ctx, cancel := context.WithCancel(context.Background())
		if after == 0 {
			cancel()
		}
		dir := filepath.Join(t.TempDir(), "run")
		enginetest.Library(t)
		o := Task{Dir: dir,
			Observer: &stopLearner{stopAt: stopAt{cancel: cancel}, after: after}}
		var stopped *InterruptedError
		if _, err := one(ctx, load(t, "pl-aggd-mean", few...), o); !errors.As(err, &stopped) || stopped.Epoch != 0 {
			t.Errorf("stopped after %d: %v", after, err)
		}
		if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("stopped after %d: the folder is still there: %v", after, err)
		}
		cancel()
	}
}

// A killed process left only the spec: --resume starts the fit again.
func TestKilledFitStartsAgain(t *testing.T) {
	dir := t.TempDir()
	spec := load(t, "pl-aggd-mean", few...)
	mark(t, dir)
	if err := os.WriteFile(filepath.Join(dir, SpecFile), spec.YAML(), 0o644); err != nil {
		t.Fatal(err)
	}
	enginetest.Library(t)
	o := Task{Dir: dir}
	if _, err := one(context.Background(), spec, o); err == nil || !strings.Contains(err.Error(), "unfinished run") {
		t.Errorf("error %v", err)
	}
	o.Resume = true
	if _, err := one(context.Background(), spec, o); err != nil {
		t.Error(err)
	}
}

func TestLearnerRefuses(t *testing.T) {
	spec := load(t, "pl-aggd-mean", few...)
	var wrong *diag.InvalidError
	other := *spec
	other.Data.Classes.V = 9
	if _, err := prepare.Trials([]*language.Spec{&other}, bagfile.Folder{}, nil); !errors.As(err, &wrong) {
		t.Errorf("another number of classes: %v", err)
	}
	enginetest.Library(t)
	o := Task{Dir: t.TempDir(), Place: engines.Place{Device: "cuda"}}
	if _, err := one(context.Background(), spec, o); !errors.As(err, &wrong) ||
		!strings.Contains(err.Error(), "on the CPU") {
		t.Errorf("a learner on the GPU: %v", err)
	}
}

// All bags may train; then the training bags are counted in the confusion matrix.
func TestLearnerWithoutTestBags(t *testing.T) {
	spec := load(t, "pl-aggd-mean", append(few, "data.normalize=none", "export.signature=batch")...)
	trials, err := prepare.Trials([]*language.Spec{spec}, bagfile.Folder{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	split := trials[0].Split
	split.Train, split.Test = append(split.Train, split.Test...), nil
	enginetest.Library(t)
	r, err := Train(context.Background(), trials, Task{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if s := r.Runs[0]; s.DetailOf != "train" || s.TestAccuracy != nil || s.TrainAccuracy == nil {
		text, _ := json.Marshal(s)
		t.Errorf("summary %s", text)
	}
}

func readMetrics(t *testing.T, path string) (list []train.Metrics) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var m train.Metrics
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		list = append(list, m)
	}
	return list
}
