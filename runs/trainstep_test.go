// Exported training steps compute what the training loop computes, for every shipped spec and for several runs at once.

package runs

import (
	"bytes"
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/compile/onnx"
	"github.com/miplc/miplc/data/bagfile"
	"github.com/miplc/miplc/internal/contract"
	"github.com/miplc/miplc/internal/testkit/enginetest"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/language/specs"
	"github.com/miplc/miplc/train"
	"github.com/miplc/miplc/train/engines"
)

// form returns the training step of a program for one run.
func form(t *testing.T, p *compile.Program) *stepForm {
	t.Helper()
	f, err := newStepForm(context.Background(), &BuildTask{Spec: p.Spec}, p)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// placedStep writes the training step of a program to a folder.
func placedStep(t *testing.T, dir string, p *compile.Program, library string) (*contract.Step, *StepCheck) {
	t.Helper()
	f := form(t, p)
	file, check, err := f.write(dir, contract.Step{Version: "test"}, library)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(file.Commit(), f.writeInitial(dir)); err != nil {
		t.Fatal(err)
	}
	return f.described, check
}

// The training step of every shipped spec agrees with the oracle, and its
// initial parameters are those that a run starts from.
func TestTrainStepOfShippedSpecs(t *testing.T) {
	library := enginetest.Library(t)
	for _, name := range specs.Models() {
		spec := load(t, name)
		if spec.Learner != nil {
			continue
		}
		t.Run(name, func(t *testing.T) {
			sig, _, _, err := describeData(spec, bagfile.Folder{})
			if err != nil {
				t.Fatal(err)
			}
			p, err := compile.Compile(spec, sig)
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			described, check := placedStep(t, dir, p, library)
			for _, v := range slices.Concat(described.Inputs, described.Outputs) {
				if v.Meaning == "" {
					t.Errorf("%s has no description", v.Name)
				}
			}
			if check.MaxAbsDiff > stepTolerance || check.MaxAbsDiff == 0 && described.Size > 100 {
				t.Errorf("difference %g", check.MaxAbsDiff)
			}
			info, err := os.Stat(filepath.Join(dir, InitialFile))
			if err != nil || info.Size() != int64(4*described.Size) {
				t.Errorf("the initial parameters fill %v bytes, %d numbers are needed: %v", info, described.Size, err)
			}
		})
	}
}

// The velocity of rmsprop is a gradient divided by a root of a mean square, without the learning rate.
func TestTrainStepOfRMSpropWithMomentum(t *testing.T) {
	library := enginetest.Library(t)
	for _, name := range []string{"quickstart", "abmil", "transmil", "proden-mean-mlp", "proden-maxmin-mlp"} {
		t.Run(name, func(t *testing.T) {
			spec := load(t, name, "train.optimizer=rmsprop", "train.momentum=0.5")
			p, err := compile.Compile(spec, compile.Signature{Instance: []int{20}, Classes: 5})
			if err != nil {
				t.Fatal(err)
			}
			_, check := placedStep(t, t.TempDir(), p, library)
			t.Logf("difference %g", check.MaxAbsDiff)
		})
	}
}

// A step that computes something else is rejected.
func TestWrongTrainStepIsFound(t *testing.T) {
	library := enginetest.Library(t)
	spec := load(t, "quickstart")
	p, err := compile.Compile(spec, compile.Signature{Instance: []int{20}, Classes: 5})
	if err != nil {
		t.Fatal(err)
	}
	other := load(t, "quickstart", "train.weight_decay=0.01")
	q, err := compile.Compile(other, p.Signature)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	f := form(t, p)
	f.described, _ = placedStep(t, dir, q, library)
	_, err = f.check(filepath.Join(dir, TrainStepFile), library)
	if err == nil || !strings.Contains(err.Error(), "away from the interpreter in new_") {
		t.Errorf("the step of another weight decay passed: %v", err)
	}
}

// The sample steps are the first steps of a run: their losses equal those of the training loop of
// the same engine.
func TestSampleStepsAreThoseOfARun(t *testing.T) {
	const steps = 4
	spec := load(t, "quickstart", "train.epochs=2", "data.generated.bags=30", "train.engine=gorgonia", "train.batch=2")
	dir := t.TempDir()
	m, err := Build(context.Background(), BuildTask{Spec: spec, Dir: dir, Library: enginetest.Library(t), SampleSteps: steps})
	if err != nil {
		t.Fatal(err)
	}
	seen := &losses{}
	sampled, err := Trials([]*language.Spec{spec}, bagfile.Folder{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	trainers := engines.NewTrainers(engines.Request{})
	defer trainers.Close()
	if _, err := train.One(context.Background(), trainers, sampled[0], train.Options{Observer: seen}); err != nil {
		t.Fatal(err)
	}
	for i, losses := range m.Losses {
		if got := seen.list[i]; len(losses) != 1 || math.Abs(got-losses[0]) > 1e-9 {
			t.Errorf("step %d: loss %v of the run, %v of the sample", i+1, got, losses)
		}
	}
	if len(m.Losses) != steps {
		t.Errorf("%d losses", len(m.Losses))
	}
}

// Each of several runs has the same initial parameters, batches and losses as a single run.
func TestRunsAreThoseOfTheirSeeds(t *testing.T) {
	library := enginetest.Library(t)
	settings := []string{"data.generated.bags=20", "train.batch=2", "train.optimizer=adam"}
	dir := t.TempDir()
	m, err := Build(context.Background(), BuildTask{Spec: load(t, "quickstart", settings...), Dir: dir, Library: library,
		SampleSteps: 3, Runs: 2})
	if err != nil {
		t.Fatal(err)
	}
	var initial []byte
	for run, seed := range []string{"train.seed=1", "train.seed=2"} {
		alone := t.TempDir()
		one, err := Build(context.Background(), BuildTask{Spec: load(t, "quickstart", append(settings, seed)...), Dir: alone,
			Library:     library,
			SampleSteps: 3})
		if err != nil {
			t.Fatal(err)
		}
		for i, losses := range m.Losses {
			if losses[run] != one.Losses[i][0] {
				t.Errorf("%s, step %d: loss %v, as a single run %v", seed, i+1, losses[run], one.Losses[i][0])
			}
		}
		content, err := os.ReadFile(filepath.Join(alone, InitialFile))
		if err != nil {
			t.Fatal(err)
		}
		initial = append(initial, content...)
	}
	got, err := os.ReadFile(filepath.Join(dir, InitialFile))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, initial) || m.TrainStep.Runs != 2 || m.StepCheck.Bags != 4 {
		t.Errorf("%d bytes of initial parameters, for a single run %d; %d runs, checked with %d bags", len(got), len(initial),
			m.TrainStep.Runs, m.StepCheck.Bags)
	}
}

// Images have no training step for several runs. The error says what to do.
func TestStepOfSeveralRunsOnImages(t *testing.T) {
	p, err := compile.Compile(load(t, "demipl-image"), compile.Signature{Instance: []int{1, 28, 28}, Classes: 5})
	if err != nil {
		t.Fatal(err)
	}
	f := form(t, p)
	f.runs = &onnx.Capacity{Bags: 1, Instances: 2, Runs: 1}
	if _, _, err := f.write(t.TempDir(), contract.Step{}, ""); err == nil ||
		!strings.HasPrefix(err.Error(), "demipl-image cannot be built for several runs, build it without --runs: ") {
		t.Errorf("error %v", err)
	} else {
		t.Log(err)
	}
}

// losses records the loss of each step of the first epoch, computed from the running mean.
type losses struct {
	train.Silent
	list []float64
	sum  float64
}

func (l *losses) Step(p train.Progress) {
	if p.Epoch > 1 || p.Evaluating {
		return
	}
	total := p.Loss * float64(p.Step)
	l.list = append(l.list, total-l.sum)
	l.sum = total
}
