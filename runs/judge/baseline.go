// The baseline beside every accuracy: logistic regression on the mean, maximum and minimum of each bag's instances.

package judge

import (
	"context"
	"math"
	"slices"
	"sync"
	"weak"

	"golang.org/x/sync/semaphore"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/internal/resources"
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

// examination is what a dataset and a split say about all models.
type examination struct {
	baseline *Baseline // nil: not defined for the bags, or too large
	facts    *bagFacts
}

// Baselines measures baselines and other properties of the bags, and keeps them, because many runs share dataset and
// split. It is safe for concurrent use.
type Baselines struct {
	measure func(context.Context, *train.Trial, *semaphore.Weighted) (*examination, error)
	memory  *semaphore.Weighted // values of all baselines that are being fitted

	mu    sync.Mutex
	calls resources.Cache[baselineKey, *baselineCall]
}

type baselineKey struct {
	set   weak.Pointer[data.Dataset]
	split string
}

// baselineCall is the measurement of a baseline.
type baselineCall struct {
	busy   *semaphore.Weighted // one trial measures, the others wait
	result *examination        // nil: not measured yet
}

// NewBaselines returns an empty collection of baselines.
func NewBaselines() *Baselines {
	return &Baselines{measure: examine, memory: semaphore.NewWeighted(baselineValues),
		calls: resources.Cache[baselineKey, *baselineCall]{MaxCount: 256}}
}

// of returns the baseline and the facts of a trial's bags. Trials with the same dataset and split share one
// measurement; if it fails, for example because its own context ended, each of the others tries again.
func (b *Baselines) of(ctx context.Context, t *train.Trial) (*examination, error) {
	call := b.call(baselineKey{weak.Make(t.Data), t.Split.Hash()})
	if err := call.busy.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	defer call.busy.Release(1)
	if call.result == nil {
		result, err := b.measure(ctx, t, b.memory)
		if err != nil {
			return nil, err
		}
		call.result = result
	}
	return call.result, nil
}

// call returns the measurement of a key, which may not have begun.
func (b *Baselines) call(key baselineKey) *baselineCall {
	b.mu.Lock()
	defer b.mu.Unlock()
	call, known := b.calls.Take(key)
	if !known {
		call = &baselineCall{busy: semaphore.NewWeighted(1)}
	}
	b.calls.Put(key, call, 1)
	return call
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

// examine measures the baseline of a trial and looks for copies, constants and leaks among its bags. It waits until
// limit has room for its values. Of datasets with more features than fit into memory, it examines a part of the bags.
func examine(ctx context.Context, t *train.Trial, limit *semaphore.Weighted) (*examination, error) {
	s := newSample(t, baselineValues)
	dim, others := t.Data.Dim(), len(s.bags)-s.training
	values, multiplications := baselineCost(s.training, others, 3*dim, t.Data.Classes)
	measured := s.complete && !t.Data.Multi && t.Data.CountKnown(t.Split.Test) > 0 && s.training > 0 &&
		values <= baselineValues && multiplications <= baselineMultiplications
	if !measured {
		values = float64(len(s.bags) * (3*dim + maxDimensions))
	}
	values = min(values, baselineValues)
	if err := limit.Acquire(ctx, int64(values)); err != nil {
		return nil, err
	}
	defer limit.Release(int64(values))
	if err := s.pool(ctx); err != nil {
		return nil, err
	}
	var e examination
	var err error
	if e.facts, err = s.facts(ctx); err == nil && measured {
		e.baseline, err = s.baseline(ctx)
	}
	return &e, err
}

// baseline fits the regression to the training bags, and tests it with the test bags whose label is known.
func (s *sample) baseline(ctx context.Context) (*Baseline, error) {
	r := newRegression(s.set, s.bags[:s.training])
	scores, err := r.fit(ctx, s.coordinates)
	if err != nil {
		return nil, err
	}
	b, correct := &Baseline{right: map[int]bool{}}, 0
	for row, bag := range s.bags {
		label, known := s.set.Label(bag)
		if !known || !s.test[bag] {
			continue
		}
		if b.right[bag] = r.classes[floats.MaxIdx(scores.RawRowView(row))] == label; b.right[bag] {
			correct++
		}
	}
	b.TestAccuracy = float64(correct) / float64(len(b.right))
	return b, nil
}

// pool sets coordinates to the mean, maximum and minimum of the instances of each bag, [bags, 3 d], as z-scores with
// the statistics of the training bags, 0 for constants. It counts the features without any variation there.
func (s *sample) pool(ctx context.Context) error {
	d := s.set.Dim()
	x := mat.NewDense(len(s.bags), 3*d, nil)
	for i, bag := range s.bags {
		if err := ctx.Err(); err != nil {
			return err
		}
		values, err := s.set.Bag(bag)
		if err != nil {
			return err
		}
		row := x.RawRowView(i)
		pool(row[:d], row[d:2*d], row[2*d:3*d], values)
	}
	largest, smallest := make([]float64, len(s.bags)), make([]float64, len(s.bags))
	for j := range d {
		mat.Col(largest, d+j, x)
		mat.Col(smallest, 2*d+j, x)
		if s.training > 0 && slices.Max(largest[:s.training]) == slices.Min(smallest[:s.training]) {
			s.constants++
		}
	}
	column := largest
	for j := range 3 * d {
		if err := ctx.Err(); err != nil {
			return err
		}
		mat.Col(column, j, x)
		standardize(column, column[:s.training])
		x.SetCol(j, column)
	}
	s.coordinates = x
	return nil
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
