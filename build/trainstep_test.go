package build

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/data/bagfile"
	"github.com/miplc/miplc/export/contract"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/prepare"
	"github.com/miplc/miplc/runtime/ortlib/ortest"
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

// placedStep writes the training step of a program into a folder.
func placedStep(t *testing.T, dir string, p *compile.Program, library string) (*contract.Step, *StepCheck) {
	t.Helper()
	s, err := writeTrainStep(dir, p, initialState(p), contract.Step{Version: "test"}, library)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.commit(dir); err != nil {
		t.Fatal(err)
	}
	return s.described, s.check
}

// The training step of every shipped spec agrees with the oracle, and its
// initial parameters are those that a run starts from.
func TestTrainStepOfShippedSpecs(t *testing.T) {
	library := ortest.Library(t)
	for _, name := range specs.Models() {
		spec := load(t, name)
		if spec.Learner != nil {
			continue
		}
		t.Run(name, func(t *testing.T) {
			sig, _, err := prepare.SignatureOf(spec, bagfile.Folder{})
			if err != nil {
				t.Fatal(err)
			}
			p, err := compile.Compile(spec, sig)
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			described, check := placedStep(t, dir, p, library)
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

// A step that computes something else is found out.
func TestWrongTrainStepIsFound(t *testing.T) {
	library := ortest.Library(t)
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
	placedStep(t, dir, q, library)
	_, err = checkStep(p, initialState(p), filepath.Join(dir, TrainStepFile), library)
	if err == nil || !strings.Contains(err.Error(), "away from the interpreter in new_") {
		t.Errorf("the step of another weight decay passed: %v", err)
	}
}

// The sample steps are the first steps of a run: their losses are those that the
// loop of the same engine reports.
func TestSampleStepsAreThoseOfARun(t *testing.T) {
	const steps = 4
	spec := load(t, "quickstart", "train.epochs=2", "data.generated.bags=30", "train.engine=gorgonia", "train.batch=2")
	dir := t.TempDir()
	m, err := Build(Options{Spec: spec, Dir: dir, Library: ortest.Library(t), SampleSteps: steps})
	if err != nil {
		t.Fatal(err)
	}
	seen := &losses{}
	sampled, err := prepare.Trials([]*language.Spec{spec}, bagfile.Folder{})
	if err != nil {
		t.Fatal(err)
	}
	trainers := engines.NewTrainers(engines.Request{})
	defer trainers.Close()
	if _, err := train.One(context.Background(), trainers, sampled[0], train.Options{Observer: seen}); err != nil {
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

// losses collects the loss of each step of the first epoch, from its mean.
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
