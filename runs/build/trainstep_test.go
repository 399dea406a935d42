// Exported training steps compute what the training loop computes, for every shipped spec.

package build

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/data/bagfile"
	"github.com/miplc/miplc/internal/contract"
	"github.com/miplc/miplc/internal/testkit/enginetest"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/runs/prepare"
	"github.com/miplc/miplc/specs"
	"github.com/miplc/miplc/train"
	"github.com/miplc/miplc/train/engines"
)

// load loads a spec.
func load(t *testing.T, name string, set ...string) *language.Spec {
	t.Helper()
	spec, err := language.Load(name, set...)
	if err != nil {
		t.Fatal(err)
	}
	return spec
}

// form returns the training step of a program.
func form(t *testing.T, p *compile.Program) *trainStep {
	t.Helper()
	f, err := newTrainStep(p, bagfile.Folder{})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// placedStep writes the training step of a program to a folder.
func placedStep(t *testing.T, dir string, p *compile.Program) (*contract.Step, *StepCheck) {
	t.Helper()
	f := form(t, p)
	file, check, err := f.write(dir, contract.Step{Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(file.Commit(), f.writeInitial(dir)); err != nil {
		t.Fatal(err)
	}
	return f.described, check
}

// The training step of every shipped spec agrees with the oracle, and its initial parameters are those that a run
// starts from.
func TestTrainStepOfShippedSpecs(t *testing.T) {
	enginetest.Library(t)
	for _, name := range specs.Models() {
		spec := load(t, name)
		if spec.Learner != nil {
			continue
		}
		t.Run(name, func(t *testing.T) {
			sig, _, _, err := prepare.Describe(spec, bagfile.Folder{})
			if err != nil {
				t.Fatal(err)
			}
			p, err := compile.Compile(spec, sig)
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			described, check := placedStep(t, dir, p)
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
	enginetest.Library(t)
	for _, name := range []string{"quickstart", "abmil", "transmil", "proden-mean-mlp", "proden-maxmin-mlp"} {
		t.Run(name, func(t *testing.T) {
			spec := load(t, name, "train.optimizer=rmsprop", "train.momentum=0.5")
			p, err := compile.Compile(spec, compile.Signature{Instance: []int{20}, Classes: 5})
			if err != nil {
				t.Fatal(err)
			}
			_, check := placedStep(t, t.TempDir(), p)
			t.Logf("difference %g", check.MaxAbsDiff)
		})
	}
}

// A step that computes something else is rejected.
func TestWrongTrainStepIsFound(t *testing.T) {
	enginetest.Library(t)
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
	f.described, _ = placedStep(t, dir, q)
	_, err = f.check(filepath.Join(dir, TrainStepFile))
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
	enginetest.Library(t)
	m, err := Run(context.Background(), Task{Spec: spec, Dir: dir, SampleSteps: steps})
	if err != nil {
		t.Fatal(err)
	}
	seen := &losses{}
	sampled, err := prepare.Trials([]*language.Spec{spec}, bagfile.Folder{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	trainers := engines.NewTrainers(engines.Place{})
	defer trainers.Close()
	if _, err := train.TrainOne(context.Background(), trainers, sampled[0], train.Options{Observer: seen}); err != nil {
		t.Fatal(err)
	}
	for i, loss := range m.Losses {
		if got := seen.list[i]; math.Abs(got-loss) > 1e-9 {
			t.Errorf("step %d: loss %v of the run, %v of the sample", i+1, got, loss)
		}
	}
	if len(m.Losses) != steps {
		t.Errorf("%d losses", len(m.Losses))
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
