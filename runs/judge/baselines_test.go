// Baselines of several runs: shared, measured in parallel, and within bounds.

package judge

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/internal/resources"
	"github.com/miplc/miplc/train"
)

// trialOf returns a trial of bags of one instance of one feature, which is the class.
func trialOf(training ...int) *train.Trial {
	d := &data.Dataset{Shape: []int{1}, Classes: 2, Offsets: []int{0}}
	for bag := range 10 {
		d.Instances, d.Offsets = append(d.Instances, float32(bag%2)), append(d.Offsets, bag+1)
		d.Labels, d.Candidates = append(d.Labels, bag%2), append(d.Candidates, uint8(1-bag%2), uint8(bag%2))
	}
	return &train.Trial{Data: d, Split: &data.Split{Train: training, Test: []int{8, 9}}}
}

// Baselines of different splits are measured in parallel: each waits here until the other has begun.
func TestBaselinesOfSplitsInParallel(t *testing.T) {
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	b := NewBaselines()
	var begun sync.WaitGroup
	begun.Add(2)
	b.measure = func(ctx context.Context, _ *train.Trial, _ *semaphore.Weighted) (*examination, error) {
		begun.Done()
		both := make(chan struct{})
		go func() { begun.Wait(); close(both) }()
		select {
		case <-both:
			return &examination{}, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	trials := []*train.Trial{trialOf(0, 1), trialOf(2, 3)}
	resources.Each(2, 2, func(i int) {
		if _, err := b.of(ctx, trials[i]); err != nil {
			t.Errorf("split %d: %v", i, err)
		}
	})
}

// Trials that share dataset and split share one measurement, also those that ask while it runs.
func TestBaselineIsMeasuredOnce(t *testing.T) {
	b, count := NewBaselines(), atomic.Int64{}
	b.measure = func(context.Context, *train.Trial, *semaphore.Weighted) (*examination, error) {
		count.Add(1)
		return &examination{baseline: &Baseline{TestAccuracy: 0.5}}, nil
	}
	trial := trialOf(0, 1)
	resources.Each(8, 8, func(int) {
		if got, err := b.of(context.Background(), trial); err != nil || got.baseline.TestAccuracy != 0.5 {
			t.Errorf("%v, %v", got, err)
		}
	})
	if count.Load() != 1 {
		t.Errorf("measured %d times", count.Load())
	}
}

// A trial whose context ends, while it measures or waits, takes no baseline from the others.
func TestBaselineOfInterruptedTrial(t *testing.T) {
	b := NewBaselines()
	begun := make(chan struct{}, 1)
	b.measure = func(ctx context.Context, t *train.Trial, limit *semaphore.Weighted) (*examination, error) {
		select {
		case begun <- struct{}{}: // the first one
			<-ctx.Done()
		default:
		}
		return examine(ctx, t, limit)
	}
	trial := trialOf(0, 1, 2, 3)
	first, stop := context.WithCancel(context.Background())
	var running resources.Group
	running.Go(func() {
		if _, err := b.of(first, trial); !errors.Is(err, context.Canceled) {
			t.Errorf("the interrupted measurement: %v", err)
		}
	})
	for len(begun) == 0 {
		time.Sleep(time.Millisecond)
	}
	gone, leave := context.WithCancel(context.Background())
	leave()
	if _, err := b.of(gone, trial); !errors.Is(err, context.Canceled) {
		t.Errorf("the interrupted wait: %v", err)
	}
	running.Go(func() {
		if got, err := b.of(context.Background(), trial); err != nil || got.baseline.TestAccuracy != 1 {
			t.Errorf("the other trial: %+v, %v", got, err)
		}
	})
	stop()
	running.Wait()
}

// countdown is a context that ends when it has been asked so often.
type countdown struct {
	context.Context
	left *int
}

func (c countdown) Err() error {
	if *c.left--; *c.left < 0 {
		return context.Canceled
	}
	return nil
}

// A baseline ends in every phase when its context ends: pooling, scaling, the change of coordinates and
// the fit.
func TestBaselineEndsWithItsContext(t *testing.T) {
	trial := trialOf(0, 1, 2, 3)
	count := 1 << 20
	all := count
	if _, err := NewBaselines().of(countdown{context.Background(), &count}, trial); err != nil {
		t.Fatal(err)
	}
	if checks := all - count; checks < 10 {
		t.Fatalf("the context was asked only %d times", checks)
	}
	for left := range all - count {
		if _, err := NewBaselines().of(countdown{context.Background(), &left}, trial); !errors.Is(err, context.Canceled) {
			t.Fatalf("a context that ends after %d questions: %v", left, err)
		}
	}
}

// Datasets with many bags, features and classes have no baseline, because it would take minutes or gigabytes.
func TestBaselineCost(t *testing.T) {
	for _, c := range []struct {
		name                             string
		training, tested, width, classes int
		small                            bool
	}{
		{"corel20", 1400, 600, 28, 20, true},
		{"CRC-MIPL", 4900, 2100, 601, 7, true},
		{"1,000 slides of 1,024 features", 700, 300, 3073, 5, true},
		{"100 classes of 2,048 features", 1050, 450, 6145, 100, false},
		{"200 classes of 4,096 features", 2100, 900, 12289, 200, false},
		{"few bags of many features and classes", 5, 1, 100_000, 1000, true},
		{"10,000 bags of 1,024 features", 7000, 3000, 3072, 5, false},
	} {
		values, multiplications := baselineCost(c.training, c.tested, c.width, c.classes)
		if small := values <= baselineValues && multiplications <= baselineMultiplications; small != c.small {
			t.Errorf("%s: %.2g values, %.2g multiplications", c.name, values, multiplications)
		}
	}
}
