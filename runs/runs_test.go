// Interrupted and resumed runs end with the same model as uninterrupted ones, and no file of the user is lost.

package runs

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/miplc/miplc/data/bagfile"
	"github.com/miplc/miplc/internal/fileio"
	"github.com/miplc/miplc/internal/testkit/enginetest"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/runs/prepare"
	"github.com/miplc/miplc/specs"
	"github.com/miplc/miplc/train"
	"github.com/miplc/miplc/train/engines"
)

func load(t *testing.T, name string, set ...string) *language.Spec {
	t.Helper()
	s, err := language.Load(name, set...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// one trains a spec in o.Dir.
func one(ctx context.Context, spec *language.Spec, o Task) (*Summary, error) {
	trials, err := prepare.Trials([]*language.Spec{spec}, bagfile.Folder{}, nil)
	if err != nil {
		return nil, err
	}
	r, err := Train(ctx, trials, o)
	if err != nil {
		return nil, err
	}
	return r.Runs[0], nil
}

// stopAt cancels a run in the middle of an epoch.
type stopAt struct {
	train.Silent
	epoch, step int
	cancel      func()
}

func (s *stopAt) Step(p train.Progress) {
	if p.Epoch == s.epoch && p.Step == s.step && !p.Evaluating {
		s.cancel()
	}
}

// An interrupted and resumed run produces the same model as an uninterrupted one.
func TestInterruptedRunResumesToSameBits(t *testing.T) {
	spec := load(t, "quickstart", "train.epochs=4", "data.generated.bags=40")
	enginetest.Library(t)
	o := Task{}
	whole, broken := t.TempDir(), t.TempDir()
	o.Dir = whole
	if _, err := one(context.Background(), spec, o); err != nil {
		t.Fatal(err)
	}
	o.Dir = broken
	for i, stop := range []stopAt{{epoch: 2, step: 5}, {epoch: 3, step: 1}, {epoch: 4, step: 28}} {
		ctx, cancel := context.WithCancel(context.Background())
		stop.cancel = cancel
		o.Observer, o.Resume = &stop, i > 0
		_, err := one(ctx, spec, o)
		var stopped *InterruptedError
		if !errors.As(err, &stopped) || stopped.Epoch != stop.epoch-1 || !stopped.Resumable {
			t.Fatalf("stopped in epoch %d: error %v", stop.epoch, err)
		}
		if state, err := StateOf(broken); state != Interrupted || err != nil {
			t.Fatalf("state %v, error %v", state, err)
		}
	}
	o.Observer = nil
	if _, err := one(context.Background(), spec, o); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{ModelFile, SpecFile, train.CheckpointFile, PlotsFolder + "/label-weights.svg",
		PlotsFolder + "/attention.svg"} {
		if !same(t, filepath.Join(whole, name), filepath.Join(broken, name)) {
			t.Errorf("%s of the resumed run differs from that of the uninterrupted one", name)
		}
	}
}

func same(t *testing.T, a, b string) bool {
	t.Helper()
	x, err := os.ReadFile(a)
	if err != nil {
		t.Fatal(err)
	}
	y, err := os.ReadFile(b)
	if err != nil {
		t.Fatal(err)
	}
	return string(x) == string(y)
}

// A trial without a folder, evaluated only in epochs with snapshots, produces the model of Train.
func TestSparseTrialAgreesWithTrain(t *testing.T) {
	spec := load(t, "quickstart", "train.epochs=5", "data.generated.bags=60")
	trials, err := prepare.Trials([]*language.Spec{spec}, bagfile.Folder{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	trial := trials[0]
	trial.OnlySnapshots, trial.Snapshots = true, []int{2}
	enginetest.Library(t)
	trainers := engines.NewTrainers(engines.Place{})
	defer trainers.Close()
	alone, err := train.TrainOne(context.Background(), trainers, trial, train.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(alone.Attention) != 2 || alone.Attention[0].Epoch != 2 || alone.Attention[1].Epoch != 5 ||
		alone.Metrics[2].Measures.Accuracy("test") != nil {
		t.Errorf("attention scores of %d epochs were kept, want those of epochs 2 and 5", len(alone.Attention))
	}
	enginetest.Library(t)
	o := Task{Dir: t.TempDir()}
	whole, err := one(context.Background(), spec, o)
	if err != nil {
		t.Fatal(err)
	}
	if *alone.Measures.Accuracy("test") != *whole.TestAccuracy || alone.Loss != whole.Loss ||
		*alone.Disambiguation != *whole.Disambiguation {
		t.Errorf("without a folder %v, loss %v; in a folder %v, loss %v", *alone.Measures.Accuracy("test"), alone.Loss,
			*whole.TestAccuracy, whole.Loss)
	}
	w := NewWriter()
	kept, err := w.Keep(context.Background(), filepath.Join(t.TempDir(), "kept"), trial, alone)
	if err != nil || kept.ModelSHA256 != whole.ModelSHA256 {
		t.Errorf("kept after the run: %+v, %v", kept, err)
	}
}

// A run that is interrupted before its first checkpoint leaves no files and removes no file of the
// user.
func TestNothingIsLeftBeforeTheFirstCheckpoint(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	ctx, cancel := context.WithCancel(context.Background())
	spec := load(t, "quickstart")
	enginetest.Library(t)
	o := Task{Dir: dir, Observer: &stopAt{epoch: 1, step: 3, cancel: cancel}}
	var stopped *InterruptedError
	if _, err := one(ctx, spec, o); !errors.As(err, &stopped) || stopped.Resumable {
		t.Fatalf("error %v", err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder is still there: %v", err)
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	notes := filepath.Join(dir, "notes.txt")
	if err := os.WriteFile(notes, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := one(ctx, spec, o); err == nil {
		t.Fatal("a cancelled run succeeded")
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 {
		t.Errorf("left in the folder: %v, %v", left, err)
	}
}

// mark writes the mark of a run into a folder.
func mark(t *testing.T, dir string) {
	t.Helper()
	f, err := fileio.LockFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Claim(fileio.RunFolder, runFiles(), nil); err != nil {
		t.Fatal(err)
	}
}

// An interrupted rename of a checkpoint still counts as a run. Without the mark of a run no file
// does.
func TestStateOf(t *testing.T) {
	for file, want := range map[string]FolderState{
		"": Absent, "notes.txt": Absent, SpecFile: Interrupted, ModelFile: Interrupted,
		train.PreviousFile: Interrupted, train.CheckpointFile: Interrupted, SummaryFile: Finished,
	} {
		ours, users := t.TempDir(), t.TempDir()
		mark(t, ours)
		for dir, want := range map[string]FolderState{ours: want, users: Absent} {
			if file != "" {
				if err := os.WriteFile(filepath.Join(dir, file), nil, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if got, err := StateOf(dir); got != want || err != nil {
				t.Errorf("with %q: %v, %v; want %v", file, got, err, want)
			}
		}
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := StateOf(file); err == nil {
		t.Error("a file passed for the folder of a run")
	}
}

// Reading the spec of a run again gives the same hash. Otherwise no run could be resumed from its
// folder.
func TestKeptSpecHasTheSameHash(t *testing.T) {
	for _, name := range specs.Models() {
		spec := load(t, name, "train.seed=7")
		path := filepath.Join(t.TempDir(), SpecFile)
		if err := os.WriteFile(path, spec.YAML(), 0o644); err != nil {
			t.Fatal(err)
		}
		if again := load(t, path); again.Identity() != spec.Identity() {
			t.Errorf("%s: read again the spec has another hash:\n%s", name, again.YAML())
		}
	}
}
