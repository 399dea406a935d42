// Measures of the parts of a split.

package train

import (
	"math"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/data/measure"
)

// Measures has the measures of each part of a split by the name of the part. Parts without bags
// are missing. Only validation bags have MeasureLoss.
type Measures map[string]measure.Values

// measuresOf computes the measures of the parts that were evaluated.
func measuresOf(found PartPredictions) Measures {
	m := Measures{}
	for part, p := range found {
		if p.Bags() > 0 {
			m[part] = p.Values()
		}
	}
	v := m[data.ValidationPart]
	switch loss, defined := v[measure.LogLoss]; {
	case v == nil:
	case found[data.ValidationPart].Threshold == 0:
		v[MeasureLoss] = candidateLoss(&found[data.ValidationPart].Predictions)
	case defined:
		v[MeasureLoss] = loss
	}
	return m
}

// candidateLoss returns MeasureLoss of bags with candidate sets.
func candidateLoss(p *measure.Predictions) (loss float64) {
	for i := range p.Bags() {
		inside := 0.0
		for c := i * p.Classes; c < (i+1)*p.Classes; c++ {
			if p.Candidates[c] != 0 {
				inside += float64(p.Probabilities[c])
			}
		}
		loss -= math.Log(max(min(inside, 1), 1.0/(1<<23)))
	}
	return loss / float64(p.Bags())
}

// Accuracy returns the share of the bags of a part whose true label is predicted, from 0 to 1. It is nil if
// the part was not measured or no true label is known.
func (m Measures) Accuracy(part string) *float64 { return m[part].Get(measure.Accuracy) }

// Validation returns the measures of the validation bags.
func (m Measures) Validation() measure.Values { return m[data.ValidationPart] }

// Test returns the measures of the test bags.
func (m Measures) Test() measure.Values { return m[data.TestPart] }
