// Package measure computes accuracy, AUROC, calibration and other measures of predictions from the
// true labels of bags. One table defines all measures.
package measure

import "slices"

// Predictions contains the predictions of some bags, and their labels and candidates if these are
// known. The zero value has no bags and is for bags with one label.
type Predictions struct {
	// Threshold is the probability above which a class is predicted, if a bag has any number of
	// labels. 0: a bag has one label, and its most probable class is predicted.
	Threshold     float64
	Classes       int
	Probabilities []float32 // [bags, Classes] row-major
	Labels        []uint8   // [bags, Classes], 1 for true labels, all 0 if they are unknown
	Known         []bool    // [bags], whether the true labels are known
	Candidates    []uint8   // [bags, Classes], 1 for candidate labels, all 0 if the set is unknown

	groups []string // [bags], see AddGroup; nil: none
}

// Add adds a bag. labels are its true labels [classes], nil if unknown. candidates may be nil.
func (p *Predictions) Add(probabilities []float32, labels, candidates []uint8) {
	p.Classes = len(probabilities)
	p.Probabilities = append(p.Probabilities, probabilities...)
	p.Known = append(p.Known, labels != nil)
	for _, row := range []struct {
		to   *[]uint8
		from []uint8
	}{{&p.Labels, labels}, {&p.Candidates, candidates}} {
		if row.from == nil {
			row.from = make([]uint8, p.Classes)
		}
		*row.to = append(*row.to, row.from...)
	}
}

// Grow allocates memory for so many more bags.
func (p *Predictions) Grow(bags, classes int) {
	p.Probabilities = slices.Grow(p.Probabilities, bags*classes)
	p.Known = slices.Grow(p.Known, bags)
	p.Labels = slices.Grow(p.Labels, bags*classes)
	p.Candidates = slices.Grow(p.Candidates, bags*classes)
}

// AddGroup sets the group of the bag that was added last, such as its patient. Either all bags have a
// group or none; empty: none.
func (p *Predictions) AddGroup(name string) {
	if name != "" {
		p.groups = append(p.groups, name)
	}
}

// Bags returns the number of bags.
func (p *Predictions) Bags() int { return len(p.Known) }

// KnownBags returns the number of bags with known labels.
func (p *Predictions) KnownBags() (n int) {
	for _, known := range p.Known {
		if known {
			n++
		}
	}
	return n
}

// multi reports whether a bag has any number of labels.
func (p *Predictions) multi() bool { return p.Threshold > 0 }

// labels returns the true labels of bag i, [Classes], sharing memory.
func (p *Predictions) labels(i int) []uint8 { return p.Labels[i*p.Classes : (i+1)*p.Classes] }

// label returns the true class of bag i with one label, -1 if it is unknown.
func (p *Predictions) label(i int) int { return slices.Index(p.labels(i), 1) }

// Row returns the probabilities of bag i, sharing memory.
func (p *Predictions) Row(i int) []float32 {
	return p.Probabilities[i*p.Classes : (i+1)*p.Classes]
}

// Argmax returns the index of the largest value, the first of equal ones. NaN is smaller than all numbers.
func Argmax[T float32 | float64](values []T) int {
	best := 0
	for i, v := range values {
		if v > values[best] || values[best] != values[best] && v == v {
			best = i
		}
	}
	return best
}

// Predicted returns the most probable class of a bag, or -1 if a probability is NaN.
func Predicted(probabilities []float32) int {
	if slices.ContainsFunc(probabilities, func(v float32) bool { return v != v }) {
		return -1
	}
	return Argmax(probabilities)
}

// Values are measures by name. A measure that is not defined for the bags has no entry.
type Values map[string]float64

// Get returns a measure, or nil if it is not defined.
func (v Values) Get(name string) *float64 {
	if x, found := v[name]; found {
		return &x
	}
	return nil
}

// Values computes all measures of the table.
func (p *Predictions) Values() Values {
	of := map[bool]*counts{false: p.count()}
	if groups := p.ByGroup(); groups != nil {
		of[true] = groups.count()
	}
	values := Values{}
	for _, m := range Table {
		t := of[m.Group]
		if t == nil || !m.Fits(p.multi()) {
			continue
		}
		if v, ok := m.of(t); ok {
			values[m.Name] = v
		}
	}
	return values
}
