// Vectors of bags.

package plaggd

import (
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/miplc/miplc/train"
)

// width returns the length of the vector of a bag whose instances have dim features.
func (v Vector) width(dim int) int {
	if v == MaxMin {
		return 2 * dim
	}
	return dim
}

// of computes the vector of a bag from its instances [n, dim], row-major.
func (v Vector) of(instances []float64, dim int, out []float64) {
	if v == MaxMin {
		copy(out, instances[:dim])
		copy(out[dim:], instances[:dim])
	} else {
		clear(out)
	}
	for at := 0; at < len(instances); at += dim {
		for j, x := range instances[at : at+dim] {
			if v == MaxMin {
				out[j], out[dim+j] = math.Max(out[j], x), math.Min(out[dim+j], x)
			} else {
				out[j] += x
			}
		}
	}
	if v == Mean {
		floats.Scale(float64(dim)/float64(len(instances)), out)
	}
}

// vectorsOf returns the vectors of the training bags, [m, width].
func vectorsOf(v Vector, p *train.Problem) (*mat.Dense, error) {
	dim := p.Data.Dim()
	x := mat.NewDense(len(p.Train), v.width(dim), nil)
	for i, bag := range p.Train {
		raw, err := p.Data.Bag(bag)
		if err != nil {
			return nil, err
		}
		v.of(train.Normalized(raw, p.Normalization), dim, x.RawRowView(i))
	}
	return x, nil
}

// unitRows scales every row to length 1. Rows of zeros do not change.
func unitRows(x *mat.Dense) *mat.Dense {
	out := mat.DenseCopyOf(x)
	m, _ := out.Dims()
	for i := range m {
		row := out.RawRowView(i)
		if norm := floats.Norm(row, 2); norm > 0 {
			floats.Scale(1/norm, row)
		}
	}
	return out
}
