// Several runs of one command give the results and files of single runs, also after an interruption.

package runs

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/miplc/miplc/data/bagfile"
	"github.com/miplc/miplc/internal/testkit/enginetest"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/runs/prepare"
	"github.com/miplc/miplc/train"
	"github.com/miplc/miplc/train/engines"
)

// several are trials of one spec with the seeds 1, 2, ...
func several(t *testing.T, seeds int, name string, set ...string) []*train.Trial {
	t.Helper()
	var list []*language.Spec
	for seed := range seeds {
		list = append(list, load(t, name, append(slices.Clone(set), fmt.Sprint("train.seed=", seed+1))...))
	}
	trials, err := prepare.Trials(list, bagfile.Folder{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, trial := range trials {
		trial.Name = fmt.Sprint("seed-", i+1)
	}
	return trials
}

// Several runs of one command give the results and files of single runs with the reference engine.
func TestSeveralEqualAlone(t *testing.T) {
	enginetest.Library(t)
	for _, c := range []struct {
		engine, name string
		set          []string
	}{
		{"xla", "quickstart", []string{"train.batch=1"}},
		{"xla", "quickstart", []string{"train.batch=3"}},
		{"xla", "elimipl", []string{"data.set=generated:prototypes", "train.batch=2"}}, // label weights after the step
		{"xla", "proden-mean", []string{"data.set=generated:prototypes"}},
		{"gorgonia", "quickstart", nil},
		{"native", "quickstart", nil},
	} {
		t.Run(c.engine+"/"+c.name, func(t *testing.T) {
			set := append([]string{"train.epochs=3", "data.generated.bags=40"}, c.set...)
			o := Task{Dir: t.TempDir(), Place: engines.Place{Engine: c.engine,
				Device: device(c.engine), Open: enginetest.Open}}
			got, err := Train(context.Background(), several(t, 2, c.name, set...), o)
			if err != nil {
				t.Fatal(err)
			}
			if len(got.Runs) != 2 || len(got.Failures) != 0 || len(got.Settings) != 1 || got.Settings[0].Mean == nil {
				t.Fatalf("%d runs, failed %v", len(got.Runs), got.Failures)
			}
			for i, trial := range several(t, 2, c.name, set...) {
				alone, err := one(context.Background(), trial.Program.Spec, Task{Dir: t.TempDir(),
					Place: engines.Place{Engine: "gorgonia"}})
				if err != nil {
					t.Fatal(err)
				}
				r := got.Runs[i]
				if r.Folder != trial.Name || r.Seed != trial.Seed() || r.SpecSHA256 != alone.SpecSHA256 ||
					math.Abs(r.Loss-alone.Loss) > 1e-4 {
					t.Errorf("run %s of seed %d ends at the loss %v, as a single run at %v", r.Folder, r.Seed, r.Loss, alone.Loss)
				}
				for _, name := range append(slices.Clone(alone.Files), train.CheckpointFile) {
					if _, err := os.Stat(filepath.Join(o.Dir, trial.Name, name)); err != nil {
						t.Error(err)
					}
				}
			}
			if _, err := Train(context.Background(), several(t, 2, c.name, set...), o); err == nil {
				t.Error("finished runs were overwritten")
			}
		})
	}
}

// stopAfter cancels after some epochs of any run.
type stopAfter struct {
	stopAt
	mu     sync.Mutex
	epochs int
}

func (s *stopAfter) Epoch(train.Metrics, train.Progress) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.epochs--; s.epochs == 0 {
		s.cancel()
	}
}

// listed are the trials of the list in a folder, without the command that began them.
func listed(t *testing.T, dir string) []*train.Trial {
	t.Helper()
	specs, names, err := readList(dir)
	if err != nil {
		t.Fatal(err)
	}
	trials, err := prepare.Trials(specs, bagfile.Folder{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, trial := range trials {
		trial.Name, trial.Setting = names[i].Name, names[i].Setting
	}
	return trials
}

// A list of runs that miplc did not write, or with names outside the folder, is an error.
func TestWrongLists(t *testing.T) {
	for text, want := range map[string]string{
		"{": "unexpected end", `{"written_by": "me", "runs": [{"name": "a"}]}`: "not a list of runs",
		`{"written_by": "miplc train", "runs": []}`:                                  "not a list of runs",
		`{"written_by": "miplc train", "runs": [{"name": "../a", "spec": ""}]}`:      "outside the folder",
		`{"written_by": "miplc train", "runs": [{"name": "", "spec": ""}]}`:          "outside the folder",
		`{"written_by": "miplc train", "runs": [{"name": "a", "spec": "wrong: 1"}]}`: "wrong",
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, listFile), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, _, err := readList(dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want ...%s...", text, err, want)
		}
	}
	if _, _, err := readList(t.TempDir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no list: %v", err)
	}
}

// After an interruption, with some runs finished and some not started, the same call produces the
// files of an uninterrupted one, with every engine and with learners.
func TestSeveralResumeToSameBits(t *testing.T) {
	enginetest.Library(t)
	for _, c := range []struct {
		engine, spec string
		set          []string
		stops        []int
	}{
		{"native", "quickstart", nil, []int{2, 4, 2}}, {"xla", "quickstart", nil, []int{2, 4, 2}},
		{"", "pl-aggd-mean", few, []int{4}},
	} {
		t.Run(c.engine+c.spec, func(t *testing.T) {
			list := func() []*train.Trial {
				if c.engine == "" {
					return several(t, 2, c.spec, c.set...)
				}
				return several(t, 3, c.spec, "train.epochs=5", "data.generated.bags=30")
			}
			o := Task{Dir: t.TempDir(), Place: engines.Place{Engine: c.engine,
				Device: device(c.engine), Open: enginetest.Open}}
			if _, err := Train(context.Background(), list(), o); err != nil {
				t.Fatal(err)
			}
			whole := o.Dir
			o.Dir = filepath.Join(t.TempDir(), "table")
			for _, epochs := range c.stops {
				ctx, cancel := context.WithCancel(context.Background())
				_, err := os.Stat(o.Dir)
				o.Resume = err == nil
				o.Observer = &stopAfter{stopAt: stopAt{cancel: cancel}, epochs: epochs}
				var stopped *InterruptedError
				if _, err := Train(ctx, list(), o); !errors.As(err, &stopped) || !strings.Contains(err.Error(), "interrupted") {
					t.Fatalf("stopped after %d epochs: %v", epochs, err)
				}
			}
			o.Resume, o.Observer = true, nil
			got, err := Train(context.Background(), listed(t, o.Dir), o)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range got.Runs {
				for _, name := range []string{ModelFile, SpecFile, train.CheckpointFile, PlotsFolder + "/label-weights.svg"} {
					if c.engine == "" && name == train.CheckpointFile {
						continue
					}
					if !same(t, filepath.Join(whole, r.Folder, name), filepath.Join(o.Dir, r.Folder, name)) {
						t.Errorf("%s of %s differs from that of an uninterrupted call", name, r.Folder)
					}
				}
			}
		})
	}
}

// Several runs that are interrupted before the first checkpoint leave no files.
func TestSeveralInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, engine := range []string{"gorgonia", "xla"} {
		enginetest.Library(t)
		o := Task{Dir: filepath.Join(t.TempDir(), "table"), Place: engines.Place{Engine: engine, Device: device(engine),
			Open: enginetest.Open}}
		var stopped *InterruptedError
		if _, err := Train(ctx, several(t, 2, "quickstart"), o); !errors.As(err, &stopped) || stopped.Resumable ||
			!strings.Contains(err.Error(), "run the command again") {
			t.Fatalf("an interrupted call: %v", err)
		}
		if _, err := os.Stat(o.Dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the folder is still there: %v", err)
		}
	}
}

// device makes engine xla use the Go executor: compiling with an installed plugin would take long.
func device(engine string) string {
	if engine == engines.XLA {
		return engines.Go
	}
	return engines.CPU
}

// If one folder must not be overwritten, no folder is changed, even with --force.
func TestForceTakesAllOrNone(t *testing.T) {
	enginetest.Library(t)
	o := Task{Dir: t.TempDir(), Place: engines.Place{Engine: "gorgonia"}}
	trials := func() []*train.Trial {
		return several(t, 2, "quickstart", "train.epochs=1", "data.generated.bags=10")
	}
	if _, err := Train(context.Background(), trials()[:1], o); err != nil {
		t.Fatal(err)
	}
	users := filepath.Join(o.Dir, "seed-2", SpecFile)
	if err := errors.Join(os.Mkdir(filepath.Dir(users), 0o777), os.WriteFile(users, []byte("mine"), 0o666)); err != nil {
		t.Fatal(err)
	}
	o.Force = true
	if _, err := Train(context.Background(), trials(), o); err == nil ||
		!strings.Contains(err.Error(), "no mark of miplc lists: spec.yaml") {
		t.Errorf("%v, want that of a user's file", err)
	}
	if state, err := StateOf(filepath.Join(o.Dir, "seed-1")); state != Finished {
		t.Errorf("the finished run is %v, %v", state, err)
	}
}

// The list of several runs is there before the first of them: after a kill at any time, --resume finds them, or a new
// call starts.
func TestListBeforeRuns(t *testing.T) {
	enginetest.Library(t)
	o := Task{Dir: filepath.Join(t.TempDir(), "table")}
	trials := several(t, 2, "quickstart")
	specs := make([]*language.Spec, len(trials))
	for i, one := range trials {
		one.Dir, specs[i] = filepath.Join(o.Dir, one.Name), one.Program.Spec
	}
	stop := errors.New("stop")
	if _, err := o.claim(trials, specs, func() error {
		for _, one := range trials {
			if state, err := StateOf(one.Dir); state != Absent || err != nil {
				t.Errorf("%s: %v, %v", one.Name, state, err)
			}
		}
		return stop
	}); !errors.Is(err, stop) {
		t.Errorf("error %v", err)
	}
}
