// Several trials, one after the other.

package train_test

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/miplc/miplc/compile"
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
		o := train.Options{Parallel: atATime, Observer: train.MergeObservers(watch, list)}
		by.Train(context.Background(), list, o, func(i int, out train.Outcome) { seen[i] = out })
		for i, want := range map[int]string{1: "out of memory", 2: "this is a bug in miplc: a slip"} {
			if seen[i].Err == nil || !strings.Contains(seen[i].Err.Error(), want) {
				t.Errorf("trial %d: %v, want %q", i, seen[i].Err, want)
			}
		}
		for _, i := range []int{0, 3} {
			alone, err := train.TrainOne(context.Background(), by, list[i], train.Options{})
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
	by.Train(ctx, []*train.Trial{&a.Trial, &b.Trial}, train.Options{Parallel: 1, Observer: watch},
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

// A mask has the scale or 0, with the probability of the mask, and depends on its name, the seed, the epoch and the
// step.
func TestDropout(t *testing.T) {
	draw := func(name string, seed uint64, epoch, step int) []float32 {
		mask, kept := make([]float32, 5001), make([]uint8, 5001)
		d := train.NewDropout(&compile.Mask{Name: name, Drop: 0.25}, seed)
		d.Draw(mask, epoch, step)
		d.DrawBytes(kept, epoch, step)
		for i, v := range mask {
			if v != float32(kept[i])*(float32(1)/0.75) {
				t.Fatalf("element %d is %v, its byte %d", i, v, kept[i])
			}
		}
		return mask
	}
	first := draw("dropout1", 7, 2, 3)
	var zeros int
	for _, v := range first {
		if v == 0 {
			zeros++
		}
	}
	if zeros < 1100 || zeros > 1400 {
		t.Errorf("%d of %d elements are dropped with a probability of 0.25", zeros, len(first))
	}
	if !slices.Equal(first, draw("dropout1", 7, 2, 3)) {
		t.Error("the same step has another mask")
	}
	for _, other := range [][]float32{draw("dropout2", 7, 2, 3), draw("dropout1", 8, 2, 3), draw("dropout1", 7<<32, 2, 3),
		draw("dropout1", 7, 3, 3), draw("dropout1", 7, 2, 4), draw("dropout1", 7, 3, 2)} {
		if slices.Equal(first, other) {
			t.Error("another step has the same mask")
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

// Batches are the same if the bags are normalised once and if they are in each step, which does not change the dataset.
func TestNormalizedOnce(t *testing.T) {
	for _, size := range []int{1, 4} {
		o := toyOptions(t, func(s *language.Spec) { s.Train.Batch.V = size })
		before := slices.Clone(o.Data.Instances)
		var want []*train.Batch
		for _, most := range []int{1 << 20, 0} {
			_, batches, err := train.FirstStepsNormalized(&o.Trial, 5, most)
			if err != nil {
				t.Fatal(err)
			}
			if want != nil && !reflect.DeepEqual(batches, want) {
				t.Errorf("%d bags a step: the batches differ", size)
			}
			want = batches
		}
		if slices.Equal(want[0].Instances, before[:len(want[0].Instances)]) || !slices.Equal(o.Data.Instances, before) {
			t.Errorf("%d bags a step: the batches are not normalised, or the dataset changed", size)
		}
	}
}
