// The training loop with the engine.

package engines

import (
	"runtime"
	"testing"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/compile/native"
	"github.com/miplc/miplc/compile/native/kernel"
	"github.com/miplc/miplc/internal/testkit/modeltest"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/train"
)

// TestLoopAllocatesNothing compares trainings of few and of many epochs: a step of one bag must not allocate.
func TestLoopAllocatesNothing(t *testing.T) {
	by := &train.StepTrainer{New: func(p *compile.Program) (train.Engine, error) {
		return NewNative(p, native.Options{Kernels: kernel.Best(), Threads: 1}), nil
	}}
	first := modeltest.Quickstart(t, 300, 1, 1)
	mallocs := func(epochs int) uint64 {
		trial := modeltest.Vary(t, first, "varied", func(s *language.Spec) {
			s.Train.Epochs.V, s.Train.EvalEvery.V, s.Train.Checkpoint.V = epochs, 1000, 0
		})
		trial.Snapshots = []int{} // no epoch records attention scores
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := train.TrainOne(t.Context(), by, trial, train.Options{}); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		return after.Mallocs - before.Mallocs
	}
	few, many := mallocs(5), mallocs(25)
	steps := 20 * len(first.Split.Train)
	if perStep := float64(many-few) / float64(steps); perStep > 0.5 {
		t.Errorf("%.2f allocations a step, those of an epoch included", perStep)
	}
}
