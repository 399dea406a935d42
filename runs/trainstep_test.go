package runs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/export"
	"github.com/miplc/miplc/runtime/ortlib/ortest"
	"github.com/miplc/miplc/specs"
)

// The training step of every shipped spec agrees with the oracle, and its
// initial parameters are those that a run starts from.
func TestTrainStepOfShippedSpecs(t *testing.T) {
	library := ortest.Library(t)
	for _, name := range specs.Names() {
		spec := load(t, name)
		if spec.Learner != nil {
			continue
		}
		t.Run(name, func(t *testing.T) {
			sig, _, err := Signature(spec, "")
			if err != nil {
				t.Fatal(err)
			}
			p, err := compile.Compile(spec, sig)
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			described, check, err := writeTrainStep(dir, p, initialState(p), export.StepMeta{Version: "test"}, library)
			if err != nil {
				t.Fatal(err)
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
	if _, _, err := writeTrainStep(dir, q, initialState(q), export.StepMeta{}, library); err != nil {
		t.Fatal(err)
	}
	_, err = checkStep(p, initialState(p), filepath.Join(dir, TrainStepFile), library)
	if err == nil || !strings.Contains(err.Error(), "away from the reference in new_") {
		t.Errorf("the step of another weight decay passed: %v", err)
	}
}
