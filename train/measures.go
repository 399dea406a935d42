package train

import "github.com/miplc/miplc/measure"

// Names of the parts of a split.
const (
	trainPart = "train"
	testPart  = "test"
)

// Measures are the measures of the parts of a split, by the name of the part. A part
// without bags has no entry.
type Measures map[string]measure.Values

// measuresOf computes the measures of the training and the test bags.
func measuresOf(found [2]*measure.Predictions) Measures {
	m := Measures{}
	for i, part := range []string{trainPart, testPart} {
		if found[i].Bags() > 0 {
			m[part] = found[i].Values()
		}
	}
	return m
}

// accuracies returns the accuracy on the training and the test bags; nil if it is not
// defined.
func (m Measures) accuracies() (train, test *float64) {
	return m[trainPart].Get(measure.Accuracy), m[testPart].Get(measure.Accuracy)
}

// Test returns the measures of the test bags.
func (m Measures) Test() measure.Values { return m[testPart] }
