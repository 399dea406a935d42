// The momentum and the initial values of label weights.

package train

import "github.com/miplc/miplc/data"

// Lambda returns the momentum of the label weights (paper Eq. 7) in epoch t of T epochs:
// (T-t)/T for the schedule "linear", 0 for "progressive", 1 for "averaging".
func Lambda(schedule string, t, epochs int) float64 { return lambdas[schedule](t, epochs) }

var lambdas = map[string]func(t, epochs int) float64{
	"linear":      func(t, epochs int) float64 { return float64(epochs-t) / float64(epochs) },
	"progressive": func(int, int) float64 { return 0 },
	"averaging":   func(int, int) float64 { return 1 },
}

// InitialWeights returns the initial label weights (paper Eq. 6), [bags, classes]: 1/|S| for the
// candidates of a bag with the candidate set S, else 0.
func InitialWeights(d *data.Dataset) []float32 {
	weights := make([]float32, d.Bags()*d.Classes)
	for i := range d.Bags() {
		candidates := d.CandidateList(i)
		for _, c := range candidates {
			weights[i*d.Classes+c] = 1 / float32(len(candidates))
		}
	}
	return weights
}
