// The baseline beside every accuracy: logistic regression on the mean, maximum and minimum of each bag's instances.

package runs

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"weak"

	"golang.org/x/sync/semaphore"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/internal/memory"
	"github.com/miplc/miplc/train"
)

// Limits of a baseline: the values that it needs in memory (400 MB), and its multiplications, which take a few seconds.
// A larger dataset has no baseline.
const (
	baselineValues          = 50_000_000
	baselineMultiplications = 50_000_000_000
)

// Baseline is the result of logistic regression on the same split. It learns from the candidates of the training bags,
// which it weights by its own predictions.
type Baseline struct {
	TestAccuracy float64 `json:"accuracy"`

	right map[int]bool // by test bag with a known label
}

// Baselines measures baselines and keeps them, because many runs share dataset and split. It is safe for concurrent
// use.
type Baselines struct {
	measure func(context.Context, *train.Trial, *semaphore.Weighted) (*Baseline, error)
	memory  *semaphore.Weighted // values of all baselines that are being fitted

	mu    sync.Mutex
	calls memory.Cache[baselineKey, *baselineCall]
}

type baselineKey struct {
	set   weak.Pointer[data.Dataset]
	split string
}

// baselineCall is the measurement of a baseline. The other fields are set when done is closed.
type baselineCall struct {
	done     chan struct{}
	baseline *Baseline
	err      error
}

// NewBaselines returns an empty collection of baselines.
func NewBaselines() *Baselines {
	return &Baselines{measure: measureBaseline, memory: semaphore.NewWeighted(baselineValues),
		calls: memory.Cache[baselineKey, *baselineCall]{MaxCount: 256}}
}

// of returns the baseline of a trial, nil if it has none. Trials with the same dataset and split share one measurement;
// if it fails, for example because its own context ended, each of the others tries again.
func (b *Baselines) of(ctx context.Context, t *train.Trial) (*Baseline, error) {
	key := baselineKey{weak.Make(t.Data), t.Split.Hash()}
	for {
		call, own := b.call(key)
		if own {
			call.run(func() (*Baseline, error) { return b.measure(ctx, t, b.memory) })
			return call.baseline, call.err
		}
		select {
		case <-call.done:
			if call.err == nil {
				return call.baseline, nil
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// call returns the call of a key that has not failed. own means that the caller has to run it.
func (b *Baselines) call(key baselineKey) (call *baselineCall, own bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	call, known := b.calls.Take(key)
	if !known || call.failed() {
		call, own = &baselineCall{done: make(chan struct{})}, true
	}
	b.calls.Put(key, call, 1)
	return call, own
}

func (c *baselineCall) run(measure func() (*Baseline, error)) {
	defer close(c.done)
	c.err = errors.New("the measurement of the baseline panicked")
	c.baseline, c.err = measure()
}

func (c *baselineCall) failed() bool {
	select {
	case <-c.done:
		return c.err != nil
	default:
		return false
	}
}

// baselineCost returns the numbers of values in memory and of multiplications for a baseline of so many training and
// other bags, with so many pooled features and classes.
func baselineCost(training, others, width, classes int) (values, multiplications float64) {
	n, m, d, k := float64(training), float64(training+others), float64(width), float64(classes)
	rank := min(n, d) + 1
	// The features of all bags before and after a change of coordinates, its matrix, and what the optimizer keeps.
	values = m*(d+rank) + rank*rank + 2*(lbfgsStore+4)*rank*k + 3*n*k
	multiplications = (n+m/2)*rank*rank + rank*rank*rank/3 + 2*maxEvaluations*n*rank*k
	if d > n {
		multiplications += m*n*d + m*n*n/2 + n*n*n/3
	}
	return values, multiplications
}

// measureBaseline fits and tests the baseline of a trial. It returns nil without test bags whose label is known, for
// bags with several labels, and for datasets that are too large. It waits until limit has room for its values.
func measureBaseline(ctx context.Context, t *train.Trial, limit *semaphore.Weighted) (*Baseline, error) {
	known := slices.DeleteFunc(slices.Clone(t.Split.Test), func(bag int) bool { _, ok := t.Data.Label(bag); return !ok })
	n := len(t.Split.Train)
	values, multiplications := baselineCost(n, len(known), 3*t.Data.Dim(), t.Data.Classes)
	if t.Data.Multi || len(known) == 0 || n == 0 || values > baselineValues ||
		multiplications > baselineMultiplications {
		return nil, nil
	}
	if err := limit.Acquire(ctx, int64(values)); err != nil {
		return nil, err
	}
	defer limit.Release(int64(values))
	x, err := pooledFeatures(ctx, t.Data, slices.Concat(t.Split.Train, known), n)
	if err != nil {
		return nil, err
	}
	r := newRegression(t.Data, t.Split.Train)
	scores, err := r.fit(ctx, x)
	if err != nil {
		return nil, err
	}
	b, correct := &Baseline{right: map[int]bool{}}, 0
	for i, bag := range known {
		label, _ := t.Data.Label(bag)
		if b.right[bag] = r.classes[floats.MaxIdx(scores.RawRowView(n+i))] == label; b.right[bag] {
			correct++
		}
	}
	b.TestAccuracy = float64(correct) / float64(len(known))
	return b, nil
}

// pooledFeatures returns the mean, maximum and minimum of the instances of each bag, [bags, 3 d]. They are z-scores with
// the statistics of the first rows, the training bags; those of a constant are 0.
func pooledFeatures(ctx context.Context, set *data.Dataset, bags []int, training int) (*mat.Dense, error) {
	d := set.Dim()
	x := mat.NewDense(len(bags), 3*d, nil)
	for i, bag := range bags {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		values, err := set.Bag(bag)
		if err != nil {
			return nil, err
		}
		row := x.RawRowView(i)
		pool(row[:d], row[d:2*d], row[2*d:3*d], values)
	}
	column := make([]float64, len(bags))
	for j := range 3 * d {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		mat.Col(column, j, x)
		standardize(column, column[:training])
		x.SetCol(j, column)
	}
	return x, nil
}

// constantBelow is the ratio of standard deviation and largest value below which a feature is constant, up to rounding.
const constantBelow = 1e-10

// standardize replaces the values of a feature by z-scores with the statistics of some of them.
func standardize(values, training []float64) {
	largest := floats.Norm(training, math.Inf(1))
	floats.AddConst(-floats.Sum(training)/float64(len(training)), values)
	deviation := floats.Norm(training, 2) / math.Sqrt(float64(len(training)))
	if deviation <= constantBelow*largest {
		clear(values)
		return
	}
	floats.Scale(1/deviation, values)
}

// pool computes the mean, maximum and minimum of the rows of values.
func pool(mean, largest, smallest []float64, values []float32) {
	d := len(mean)
	for at := 0; at < len(values); at += d {
		for j, v := range values[at : at+d] {
			v := float64(v)
			mean[j] += v
			if at == 0 {
				largest[j], smallest[j] = v, v
			}
			largest[j], smallest[j] = max(largest[j], v), min(smallest[j], v)
		}
	}
	floats.Scale(float64(d)/float64(len(values)), mean)
}
