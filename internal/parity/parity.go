// Package parity runs engines side by side on the same seeded bags and says
// how far their predictions are apart.
package parity

import (
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/miplc/miplc/internal/extent"
	"github.com/miplc/miplc/internal/stream"
)

// Tolerance is the largest absolute difference of a probability or an
// attention score that counts as agreement.
const Tolerance = 1e-5

// DefaultSizes are the numbers of instances of the bags that Measure draws: the
// smallest bag, a small one, one of usual size and a large one.
var DefaultSizes = []int{1, 2, 40, 1000}

// Engine predicts one bag at a time. Instances are the raw features [n, ...],
// row-major; probabilities come as [k], attention as [n].
type Engine struct {
	Name    string
	Predict func(instances []float32, n int) (probabilities, attention []float32, err error)
}

// Options say which bags Measure draws.
type Options struct {
	Instance []int  // shape of one instance
	Sizes    []int  // instances of each bag; nil: DefaultSizes
	Seed     uint64 // of the features
	// Mean and Std, when given, are those of each feature, so that the bags look
	// like the model's own data; nil: 0 and 1.
	Mean, Std []float32
	Tolerance float64 // 0: Tolerance
}

// Pair is how far two engines are apart.
type Pair struct {
	A             string  `json:"a"`
	B             string  `json:"b"`
	Probabilities float64 `json:"probabilities"` // largest absolute difference
	Attention     float64 `json:"attention"`     // largest absolute difference
	MaxAbsDiff    float64 `json:"max_abs_diff"`  // the larger of the two
	WorstBag      int     `json:"worst_bag"`     // instances of the bag with MaxAbsDiff
	OK            bool    `json:"ok"`
}

// Report is the result of Measure.
type Report struct {
	OK         bool     `json:"ok"`
	MaxAbsDiff float64  `json:"max_abs_diff"`
	Tolerance  float64  `json:"tolerance"`
	Seed       uint64   `json:"seed"`
	BagSizes   []int    `json:"bag_sizes"`
	Engines    []string `json:"engines"`
	Pairs      []Pair   `json:"pairs"`
}

// Err is nil when all engines agree.
func (r *Report) Err() error {
	var errs []error
	for _, p := range r.Pairs {
		if !p.OK {
			errs = append(errs, fmt.Errorf("%s and %s differ by %.3g on a bag of %d, more than %.0e",
				p.A, p.B, p.MaxAbsDiff, p.WorstBag, r.Tolerance))
		}
	}
	return errors.Join(errs...)
}

// Map gives the largest difference of each pair by "a/b", the form kept in the
// metadata of a model.
func (r *Report) Map() map[string]float64 {
	m := make(map[string]float64, len(r.Pairs))
	for _, p := range r.Pairs {
		m[p.A+"/"+p.B] = p.MaxAbsDiff
	}
	return m
}

// prediction is what one engine says of one bag.
type prediction struct{ probabilities, attention []float32 }

// Measure runs every engine on the same bags, engines at the same time, and
// compares all pairs. It fails when an engine fails; engines that disagree are no failure, see Report.Err.
func Measure(engines []Engine, o Options) (*Report, error) {
	if len(engines) < 2 {
		return nil, errors.New("parity needs at least two engines to compare")
	}
	if o.Sizes == nil {
		o.Sizes = DefaultSizes
	}
	if o.Tolerance == 0 {
		o.Tolerance = Tolerance
	}
	r := &Report{OK: true, Tolerance: o.Tolerance, Seed: o.Seed, BagSizes: o.Sizes}
	found := make([][]prediction, len(engines)) // by engine and bag
	errs := make([]error, len(engines))
	var all sync.WaitGroup
	for i, e := range engines {
		r.Engines = append(r.Engines, e.Name)
		all.Go(func() { found[i], errs[i] = predictions(e, o) })
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	for i := range engines {
		for j := i + 1; j < len(engines); j++ {
			pair, err := compare(engines[i].Name, engines[j].Name, found[i], found[j], o)
			if err != nil {
				return nil, err
			}
			r.Pairs = append(r.Pairs, pair)
			r.OK = r.OK && pair.OK
			r.MaxAbsDiff = math.Max(r.MaxAbsDiff, pair.MaxAbsDiff)
		}
	}
	return r, nil
}

// predictions runs one engine on all bags.
func predictions(e Engine, o Options) ([]prediction, error) {
	var found []prediction
	for j, n := range o.Sizes {
		p, a, err := e.Predict(Bag(o, j), n)
		if err != nil {
			return nil, fmt.Errorf("%s on a bag of %d: %w", e.Name, n, err)
		}
		if len(a) != n {
			return nil, fmt.Errorf("%s gives %d attention scores for a bag of %d", e.Name, len(a), n)
		}
		found = append(found, prediction{append([]float32(nil), p...), append([]float32(nil), a...)})
	}
	return found, nil
}

func compare(a, b string, x, y []prediction, o Options) (Pair, error) {
	pair := Pair{A: a, B: b, WorstBag: o.Sizes[0]}
	for i, n := range o.Sizes {
		if len(x[i].probabilities) != len(y[i].probabilities) {
			return pair, fmt.Errorf("%s gives %d classes, %s gives %d", a, len(x[i].probabilities), b, len(y[i].probabilities))
		}
		p := maxAbsDiff(x[i].probabilities, y[i].probabilities)
		q := maxAbsDiff(x[i].attention, y[i].attention)
		if worst := math.Max(p, q); worst > pair.MaxAbsDiff {
			pair.MaxAbsDiff, pair.WorstBag = worst, n
		}
		pair.Probabilities = math.Max(pair.Probabilities, p)
		pair.Attention = math.Max(pair.Attention, q)
	}
	pair.OK = pair.MaxAbsDiff <= o.Tolerance
	return pair, nil
}

// maxAbsDiff treats a value that is not a number on either side as the largest
// difference there is; JSON knows no infinity.
func maxAbsDiff(x, y []float32) float64 {
	worst := 0.0
	for i := range x {
		d := math.Abs(float64(x[i]) - float64(y[i]))
		if math.IsNaN(d) || math.IsInf(d, 0) {
			return math.MaxFloat64
		}
		worst = math.Max(worst, d)
	}
	return worst
}

// Bag draws the instances of bag j of the options, [n, ...] row-major. Each bag
// has its own stream, so its numbers do not depend on the other sizes.
func Bag(o Options, j int) []float32 {
	dim := extent.Size(o.Instance)
	rng := stream.New(o.Seed, "parity", uint64(o.Sizes[j]))
	x := make([]float32, o.Sizes[j]*dim)
	for i := range x {
		v := float32(rng.NormFloat64())
		if o.Std != nil {
			v = v*o.Std[i%dim] + o.Mean[i%dim]
		}
		x[i] = v
	}
	return x
}
