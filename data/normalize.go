// Means and deviations of features.

package data

import "math"

// Normalization contains the statistics for z-scores of features. They are float32 because training
// and the exported model use float32.
type Normalization struct {
	Mean []float32 // [Dim]
	Std  []float32 // [Dim]; 1 for a feature that is constant
}

// NewNormalization returns the mean and standard deviation of every feature over all instances of
// bags (numbered from 0). The deviation is that of the population (divided by the number of
// instances), as in the program of the DEMIPL authors. A constant feature gets the deviation 1, so
// that its z-score is 0. It fails only for a dataset on disk.
func NewNormalization(d *Dataset, bags []int) (*Normalization, error) {
	dim := d.Dim()
	mean, square := make([]float64, dim), make([]float64, dim)
	n := 0.0
	err := d.Each(bags, func(_ int, x []float32) error {
		for at := 0; at < len(x); at += dim {
			n++
			for j, v := range x[at : at+dim] {
				// Welford's algorithm is exact for constants and stable for large means.
				delta := float64(v) - mean[j]
				mean[j] += delta / n
				square[j] += float64(delta * (float64(v) - mean[j])) // the conversion prevents a fused multiply-add
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	z := &Normalization{Mean: make([]float32, dim), Std: make([]float32, dim)}
	for j := range dim {
		z.Mean[j] = float32(mean[j])
		z.Std[j] = float32(math.Sqrt(square[j] / math.Max(n, 1)))
		if z.Std[j] == 0 || math.IsInf(float64(1/z.Std[j]), 0) {
			z.Std[j] = 1
		}
	}
	return z, nil
}

// Apply writes the z-scores (x - mean) / std of whole instances to a slice, which may be from.
func (z *Normalization) Apply(to, from []float32) {
	for len(from) > 0 {
		for j, m := range z.Mean {
			to[j] = (from[j] - m) / z.Std[j]
		}
		to, from = to[len(z.Mean):], from[len(z.Mean):]
	}
}
