// Several trials, one after the other.

package train_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/train"
)

// Each trial of a list has the same outcome as by itself, errors and panics affect only their trial,
// and the observer receives the epochs of all trials.
func TestSeveralTrials(t *testing.T) {
	var list []*train.Trial
	epochs := 0
	for seed := range 4 {
		o := toyOptions(t, func(s *language.Spec) {
			s.Train.Seed.V = seed
			s.Train.Epochs.V += seed
			epochs += s.Train.Epochs.V
		})
		o.Name = string(rune('a' + seed))
		list = append(list, &o.Trial)
	}
	by := &train.StepTrainer{New: func(p *compile.Program) (train.Engine, error) {
		return &toyEngine{p: p, spoil: func(*train.Batch, *train.StepResult) error {
			switch p.Spec.Train.Seed.V {
			case 1:
				return errors.New("out of memory")
			case 2:
				panic("a slip")
			}
			return nil
		}}, nil
	}}
	for _, atATime := range []int{0, 1, 3} {
		watch, seen := &spy{}, make([]train.Outcome, len(list))
		o := train.Options{MaxParallel: atATime, Observer: train.MergeObservers(watch, list)}
		by.Train(context.Background(), list, o, func(i int, out train.Outcome) { seen[i] = out })
		for i, want := range map[int]string{1: "out of memory", 2: "this is a bug in miplc: a slip"} {
			if seen[i].Err == nil || !strings.Contains(seen[i].Err.Error(), want) {
				t.Errorf("trial %d: %v, want %q", i, seen[i].Err, want)
			}
		}
		for _, i := range []int{0, 3} {
			alone, err := train.One(context.Background(), by, list[i], train.Options{})
			if err != nil || seen[i].Err != nil {
				t.Fatal(err, seen[i].Err)
			}
			if bits(alone) != bits(seen[i].Report) {
				t.Errorf("%d at a time: trial %d differs from the same trial by itself", atATime, i)
			}
		}
		if last := watch.done[len(watch.done)-1]; watch.plan.Trials != 4 || watch.plan.Epochs != epochs ||
			len(watch.done) != 15 || last.Epoch != 15 {
			t.Errorf("observed %+v of %d epochs and %d epochs, the last as %d", watch.plan, epochs, len(watch.done), last.Epoch)
		}
	}
}

// If the context ends, trials that did not start have its error.
func TestSeveralTrialsStopped(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	a, b := toyOptions(t, nil), toyOptions(t, nil)
	watch := &spy{epoch: func(train.Metrics) { cancel() }}
	by := &train.StepTrainer{New: a.NewEngine}
	outcomes := 0
	by.Train(ctx, []*train.Trial{&a.Trial, &b.Trial}, train.Options{MaxParallel: 1, Observer: watch},
		func(_ int, out train.Outcome) {
			outcomes++
			if !errors.Is(out.Err, context.Canceled) {
				t.Errorf("after the end of the context: %v", out.Err)
			}
		})
	if outcomes != 2 || len(watch.done) != 1 {
		t.Errorf("%d outcomes, %d epochs", outcomes, len(watch.done))
	}
}

// A mask has the numbers of the random stream that rand.Float64 makes smaller than Drop as zeros.
func TestDrawMask(t *testing.T) {
	for _, drop := range []float64{0, 0x1p-53, 0.1, 0.25, 1. / 3, 0.5, 0.9, 1 - 0x1p-53} {
		mask := make([]uint8, 5000)
		train.DrawMask(mask, &compile.Mask{Name: "dropout1", Drop: drop}, 7, 2, 3)
		numbers := ndarray.NewStream(7, "dropout1", 2, 3)
		for i, keep := range mask {
			if number := numbers.Float64(); (keep == 0) != (number < drop) || keep > 1 {
				t.Fatalf("drop %g: number %d is %g, its mask %d", drop, i, number, keep)
			}
		}
	}
}

// The masks of larger batches use the memory that the first batch allocated.
func TestMasksAllocateOnce(t *testing.T) {
	o := toyOptions(t, func(s *language.Spec) { s.Train.Batch.V = 1 })
	sizes, room := map[int]bool{}, map[int]bool{}
	by := &train.StepTrainer{New: func(p *compile.Program) (train.Engine, error) {
		return &toyEngine{p: p, spoil: func(b *train.Batch, _ *train.StepResult) error {
			sizes[len(b.BagOf)], room[cap(b.Masks["dropout1"])] = true, true
			return nil
		}}, nil
	}}
	by.Train(t.Context(), []*train.Trial{&o.Trial}, train.Options{}, func(_ int, out train.Outcome) {
		if out.Err != nil {
			t.Error(out.Err)
		}
	})
	if len(sizes) < 2 || len(room) != 1 {
		t.Errorf("batches of %d sizes have masks in memory of %d sizes", len(sizes), len(room))
	}
}
