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
	"github.com/miplc/miplc/data/measure"
	"github.com/miplc/miplc/internal/memory"
	"github.com/miplc/miplc/train"
)

// Limits of a baseline: the steps of its optimizer, the values that it needs in memory (400 MB), and its
// multiplications, which take a few seconds. A larger dataset has no baseline.
const (
	baselineSteps           = 200
	baselineValues          = 50_000_000
	baselineMultiplications = 50_000_000_000
)

// Baseline is the result of logistic regression on the same split. It learns from the candidates of a training bag with
// equal weights, or from its label if that is its only candidate.
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
	n, m, d, k := float64(training), float64(others), float64(width), float64(classes)
	// The features of all bags; weights, momentum, gradient and next weights; targets, predictions and scores.
	values = (n+m)*d + 4*d*k + (2*n+m)*k
	return values, 2 * baselineSteps * n * d * k
}

// measureBaseline fits and tests the baseline of a trial. It returns nil without test bags whose label is known, for
// bags with several labels, and for datasets that are too large. It waits until limit has room for its values.
func measureBaseline(ctx context.Context, t *train.Trial, limit *semaphore.Weighted) (*Baseline, error) {
	known := slices.DeleteFunc(slices.Clone(t.Split.Test), func(bag int) bool { _, ok := t.Data.Label(bag); return !ok })
	n, width := len(t.Split.Train), 3*t.Data.Dim()+1
	values, multiplications := baselineCost(n, len(known), width, t.Data.Classes)
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
	w, err := fitLogistic(ctx, x.Slice(0, n, 0, width).(*mat.Dense), uniformTargets(t.Data, t.Split.Train))
	if err != nil {
		return nil, err
	}
	var scores mat.Dense
	scores.Mul(x.Slice(n, n+len(known), 0, width), w)
	b, correct := &Baseline{right: map[int]bool{}}, 0
	for i, bag := range known {
		label, _ := t.Data.Label(bag)
		if b.right[bag] = measure.Argmax(scores.RawRowView(i)) == label; b.right[bag] {
			correct++
		}
	}
	b.TestAccuracy = float64(correct) / float64(len(known))
	return b, nil
}

// pooledFeatures returns the mean, maximum and minimum of the instances of each bag, and a 1, [bags, 3 d + 1]. They are
// z-scores with the statistics of the first rows, the training bags.
func pooledFeatures(ctx context.Context, set *data.Dataset, bags []int, training int) (*mat.Dense, error) {
	d := set.Dim()
	x := mat.NewDense(len(bags), 3*d+1, nil)
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
		row[3*d] = 1
	}
	column := make([]float64, len(bags))
	for j := range 3 * d {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		mat.Col(column, j, x)
		mean := floats.Sum(column[:training]) / float64(training)
		floats.AddConst(-mean, column)
		if deviation := floats.Norm(column[:training], 2) / math.Sqrt(float64(training)); deviation > 1e-12 {
			floats.Scale(1/deviation, column)
		}
		x.SetCol(j, column)
	}
	return x, nil
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

// uniformTargets returns equal weights for the candidates of each bag, [bags, classes].
func uniformTargets(set *data.Dataset, bags []int) *mat.Dense {
	y := mat.NewDense(len(bags), set.Classes, nil)
	for i, bag := range bags {
		list := set.CandidateList(bag)
		for _, class := range list {
			y.Set(i, class, 1/float64(len(list)))
		}
	}
	return y
}

// fitLogistic minimises the mean cross-entropy of softmax(x w) against y plus |w|^2 / 2n, as scikit-learn's
// LogisticRegression with C = 1 does, by gradient descent with Nesterov's momentum. The step is the inverse of a
// bound of the curvature, so the loss falls without a learning rate to choose.
func fitLogistic(ctx context.Context, x, y *mat.Dense) (*mat.Dense, error) {
	n, width := x.Dims()
	_, classes := y.Dims()
	decay := 1 / float64(n)
	bound, err := curvature(ctx, x)
	if err != nil {
		return nil, err
	}
	step := 1 / (bound/2 + decay)
	w, ahead := mat.NewDense(width, classes, nil), mat.NewDense(width, classes, nil)
	var p, gradient, next mat.Dense
	for i := range baselineSteps {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		p.Mul(x, ahead)
		for row := range n {
			r := p.RawRowView(row)
			shift := floats.LogSumExp(r)
			for j := range r {
				r[j] = math.Exp(r[j] - shift)
			}
		}
		p.Sub(&p, y)
		gradient.Mul(x.T(), &p)
		gradient.Scale(1/float64(n), &gradient)
		next.Scale(1-step*decay, ahead)
		gradient.Scale(step, &gradient)
		next.Sub(&next, &gradient)
		momentum := float64(i) / float64(i+3)
		ahead.Sub(&next, w)
		ahead.Scale(momentum, ahead)
		ahead.Add(ahead, &next)
		w.Copy(&next)
	}
	return w, nil
}

// curvature returns the largest eigenvalue of x'x / n, by power iteration.
func curvature(ctx context.Context, x *mat.Dense) (float64, error) {
	n, width := x.Dims()
	v := mat.NewVecDense(width, nil)
	for j := range width {
		v.SetVec(j, 1+float64(j%7)/7)
	}
	var xv, next mat.VecDense
	largest := 1.0
	for range 30 {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		xv.MulVec(x, v)
		next.MulVec(x.T(), &xv)
		norm := mat.Norm(&next, 2)
		if norm == 0 {
			return 1, nil
		}
		largest = norm / mat.Norm(v, 2) / float64(n)
		v.ScaleVec(1/norm, &next)
	}
	return 1.1 * largest, nil // the iteration approaches it from below
}
