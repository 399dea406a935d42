// Package measure judges predictions by the true labels of bags: by their classes, by
// their probabilities and by how well these are calibrated. One table defines all measures.
package measure

// Predictions are the predictions of some bags with what is known about the bags. The zero
// value has no bags.
type Predictions struct {
	Classes       int
	Probabilities []float32 // [bags, Classes] row-major
	Labels        []int     // [bags] true classes, -1 unknown
	Candidates    []uint8   // [bags, Classes], 1 for candidate labels, all 0 if the set is unknown
}

// Add adds a bag. label is its true class, or -1. candidates may be nil.
func (p *Predictions) Add(probabilities []float32, label int, candidates []uint8) {
	p.Classes = len(probabilities)
	p.Probabilities = append(p.Probabilities, probabilities...)
	p.Labels = append(p.Labels, label)
	if candidates == nil {
		candidates = make([]uint8, p.Classes)
	}
	p.Candidates = append(p.Candidates, candidates...)
}

// Bags returns the number of bags.
func (p *Predictions) Bags() int { return len(p.Labels) }

// Known returns the number of bags with a known label.
func (p *Predictions) Known() (n int) {
	for _, label := range p.Labels {
		if label >= 0 {
			n++
		}
	}
	return n
}

// row returns the probabilities of bag i, sharing memory.
func (p *Predictions) row(i int) []float32 {
	return p.Probabilities[i*p.Classes : (i+1)*p.Classes]
}

// predictedClass returns the most probable class of bag i, the first of equals.
func (p *Predictions) predictedClass(i int) int {
	row := p.row(i)
	best := 0
	for c, v := range row {
		if v > row[best] {
			best = c
		}
	}
	return best
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
	t := p.count()
	values := Values{}
	for _, m := range Table {
		if v, ok := m.of(t); ok {
			values[m.Name] = v
		}
	}
	return values
}

// confusion counts the bags with a known label by true and predicted class,
// [true][predicted].
func (p *Predictions) confusion() [][]int {
	matrix := make([][]int, p.Classes)
	for i := range matrix {
		matrix[i] = make([]int, p.Classes)
	}
	for i, label := range p.Labels {
		if label >= 0 {
			matrix[label][p.predictedClass(i)]++
		}
	}
	return matrix
}
