// The baseline beside every accuracy: logistic regression on the mean, maximum and minimum of each bag's instances.

package runs

import (
	"context"
	"math"
	"slices"
	"sync"
	"weak"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/data/measure"
	"github.com/miplc/miplc/internal/memory"
	"github.com/miplc/miplc/train"
)

// Limits of the baseline: the steps of its optimizer, and the number of values that it may need in memory, 400 MB.
// Larger datasets have none.
const (
	baselineSteps  = 200
	baselineValues = 50_000_000
)

// Baseline is the result of logistic regression on the same split. It learns from the candidates of a training bag with
// equal weights, or from its label if that is its only candidate.
type Baseline struct {
	TestAccuracy float64 `json:"accuracy"`

	right map[int]bool // by test bag with a known label
}

// knownBaselines has the baselines that this process has measured, because many runs share dataset and split.
var knownBaselines = baselines{cache: memory.Cache[baselineKey, *Baseline]{MaxCount: 256}}

type baselines struct {
	mu    sync.Mutex
	cache memory.Cache[baselineKey, *Baseline]
}

type baselineKey struct {
	set   weak.Pointer[data.Dataset]
	split string
}

// of returns the baseline of a trial. Trials that ask at the same time wait for each other.
func (k *baselines) of(ctx context.Context, t *train.Trial) (*Baseline, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	key := baselineKey{weak.Make(t.Data), t.Split.Hash()}
	b, known := k.cache.Take(key)
	if !known {
		var err error
		if b, err = measureBaseline(ctx, t); err != nil {
			return nil, err
		}
	}
	k.cache.Put(key, b, 1)
	return b, nil
}

// measureBaseline fits and tests the baseline of a trial. It returns nil without test bags whose label is known, for
// bags with several labels, and for datasets that are too large.
func measureBaseline(ctx context.Context, t *train.Trial) (*Baseline, error) {
	known := slices.DeleteFunc(slices.Clone(t.Split.Test), func(bag int) bool { _, ok := t.Data.Label(bag); return !ok })
	bags := slices.Concat(t.Split.Train, known)
	if t.Data.Multi || len(known) == 0 || len(t.Split.Train) == 0 || len(bags)*(3*t.Data.Dim()+1) > baselineValues {
		return nil, nil
	}
	x, err := pooledFeatures(ctx, t.Data, bags, len(t.Split.Train))
	if err != nil {
		return nil, err
	}
	n, width := len(t.Split.Train), 3*t.Data.Dim()+1
	w := fitLogistic(x.Slice(0, n, 0, width).(*mat.Dense), uniformTargets(t.Data, t.Split.Train))
	var scores mat.Dense
	scores.Mul(x.Slice(n, len(bags), 0, width), w)
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
	for j := range 3 * d {
		column := mat.Col(nil, j, x)
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
func fitLogistic(x, y *mat.Dense) *mat.Dense {
	n, width := x.Dims()
	_, classes := y.Dims()
	decay := 1 / float64(n)
	step := 1 / (curvature(x)/2 + decay)
	w, ahead := mat.NewDense(width, classes, nil), mat.NewDense(width, classes, nil)
	var p, gradient, next mat.Dense
	for i := range baselineSteps {
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
	return w
}

// curvature returns the largest eigenvalue of x'x / n, by power iteration.
func curvature(x *mat.Dense) float64 {
	n, width := x.Dims()
	v := mat.NewVecDense(width, nil)
	for j := range width {
		v.SetVec(j, 1+float64(j%7)/7)
	}
	var xv, next mat.VecDense
	largest := 1.0
	for range 30 {
		xv.MulVec(x, v)
		next.MulVec(x.T(), &xv)
		norm := mat.Norm(&next, 2)
		if norm == 0 {
			return 1
		}
		largest = norm / mat.Norm(v, 2) / float64(n)
		v.ScaleVec(1/norm, &next)
	}
	return 1.1 * largest // the iteration approaches it from below
}
