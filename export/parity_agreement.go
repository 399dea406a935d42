// The result of a comparison of engines: which pairs agree, which failed, and the verdict on the model.

package export

import (
	"errors"
	"fmt"
	"slices"
)

// Pair is the difference of two engines, or of an engine that predicts several bags at once from
// itself on single bags (B is "several bags at once").
type Pair struct {
	A             string  `json:"a"`
	B             string  `json:"b"`
	Probabilities float64 `json:"probabilities"` // largest absolute difference
	Attention     float64 `json:"attention"`     // largest absolute difference
	MaxAbsDiff    float64 `json:"max_abs_diff"`  // the larger of the two
	// instances of the bag that is closest to its bound, or furthest beyond it; first of those above the tolerance
	WorstBag int     `json:"worst_bag"`
	Bound    float64 `json:"bound"` // of that bag
	OK       bool    `json:"ok"`
}

// predictMany is the B of a Pair that compares one run on several bags with runs on single bags.
const predictMany = "several bags at once"

// FailedEngine is an engine that could not predict the bags.
type FailedEngine struct {
	Engine string `json:"engine"`
	Error  string `json:"error"`
}

// Agreement is the result of Compare.
type Agreement struct {
	OK         bool           `json:"ok"`
	MaxAbsDiff float64        `json:"max_abs_diff"`
	Tolerance  float64        `json:"tolerance"` // the smallest bound of a bag
	Seed       uint64         `json:"seed"`
	BagSizes   []int          `json:"bag_sizes"`
	Required   []int          `json:"required_bag_sizes,omitempty"` // sizes that OK and Pairs are about; nil: all
	Engines    []string       `json:"engines"`
	Pairs      []Pair         `json:"pairs"`
	Failed     []FailedEngine `json:"failed,omitempty"`
	Warnings   []string       `json:"warnings,omitempty"` // differences on bags of other sizes
	LeftOut    []string       `json:"left_out,omitempty"` // engines that OK, MaxAbsDiff, Err and Map ignore
}

// LeaveOut excludes an engine from the verdict. Its results stay in Pairs and Failed.
func (r *Agreement) LeaveOut(engine string) {
	r.LeftOut = append(r.LeftOut, engine)
	r.evaluate()
}

// evaluate updates OK and MaxAbsDiff.
func (r *Agreement) evaluate() {
	r.OK, r.MaxAbsDiff = r.Err() == nil, 0
	for _, p := range r.Pairs {
		if r.counts(p) {
			r.MaxAbsDiff = max(r.MaxAbsDiff, p.MaxAbsDiff)
		}
	}
}

func (r *Agreement) counts(p Pair) bool {
	return !slices.Contains(r.LeftOut, p.A) && !slices.Contains(r.LeftOut, p.B)
}

// Agrees reports whether an engine predicted all bags, agreed with itself on several bags at once,
// and agreed with each of the others.
func (r *Agreement) Agrees(engine string, others ...string) bool {
	for _, f := range r.Failed {
		if f.Engine == engine {
			return false
		}
	}
	for _, p := range r.Pairs {
		if !p.OK && (p.A == engine && (p.B == predictMany || slices.Contains(others, p.B)) ||
			p.B == engine && slices.Contains(others, p.A)) {
			return false
		}
	}
	return true
}

// Err returns nil if all engines agree.
func (r *Agreement) Err() error {
	var errs []error
	for _, f := range r.Failed {
		if !slices.Contains(r.LeftOut, f.Engine) {
			errs = append(errs, fmt.Errorf("%s: %s", f.Engine, f.Error))
		}
	}
	for _, p := range r.Pairs {
		if !p.OK && r.counts(p) {
			errs = append(errs, fmt.Errorf("%s and %s differ by %.3g on a bag of %d, more than %.2g",
				p.A, p.B, p.MaxAbsDiff, p.WorstBag, p.Bound))
		}
	}
	return errors.Join(errs...)
}

// Map returns the largest difference of each pair by "a/b", as in the metadata of a model.
func (r *Agreement) Map() map[string]float64 {
	m := make(map[string]float64, len(r.Pairs))
	for _, p := range r.Pairs {
		if r.counts(p) {
			m[p.A+"/"+p.B] = p.MaxAbsDiff
		}
	}
	return m
}

// MaxBound returns the largest bound of a pair.
func (r *Agreement) MaxBound() float64 {
	bound := r.Tolerance
	for _, p := range r.Pairs {
		if r.counts(p) {
			bound = max(bound, p.Bound)
		}
	}
	return bound
}
