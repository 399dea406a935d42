// Initial parameters and states.

package train

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/language"
)

// InitParams draws the learned parameters of a program, row-major by name. Each parameter has its
// own random stream "param/"+name, so that a new parameter in a model does not change the others.
func InitParams(p *compile.Program, seed uint64) map[string][]float32 {
	params := make(map[string][]float32, len(p.Params))
	for _, param := range p.Params {
		values := make([]float32, ndarray.Size(param.Shape))
		r := ndarray.NewStream(seed, "param/"+param.Name)
		draw := distributions[param.Init.Kind]
		for i := range values {
			values[i] = float32(param.Init.Scale * draw(r))
		}
		params[param.Name] = values
	}
	return params
}

// distributions has the distributions of compile.Init at scale 1, by kind.
var distributions = map[string]func(r *rand.Rand) float64{
	"uniform":  func(r *rand.Rand) float64 { return 2*r.Float64() - 1 },
	"normal":   func(r *rand.Rand) float64 { return r.NormFloat64() },
	"constant": func(*rand.Rand) float64 { return 1 },
}

// InitState returns the initial state of a training: drawn parameters, zeros for the optimiser
// and, if the program normalises, the statistics of the bags that data.normalize selects. Bags
// count from 0. Errors are those of Normalization.
func InitState(p *compile.Program, d *data.Dataset, trainBags []int, seed uint64) (*State, error) {
	s := &State{Params: InitParams(p, seed)}
	z, err := Normalization(p.Spec, d, trainBags)
	if z != nil && p.Normalize {
		s.Params[compile.ParamMean], s.Params[compile.ParamStd] = z.Mean, z.Std
	}
	return s, err
}

// UntrainedState returns drawn parameters and, if the program normalises, statistics with mean 0 and
// deviation 1.
func UntrainedState(p *compile.Program, seed uint64) *State {
	s := &State{Params: InitParams(p, seed)}
	if p.Normalize {
		n := ndarray.Size(p.Signature.Instance)
		s.Params[compile.ParamMean], s.Params[compile.ParamStd] = make([]float32, n), slices.Repeat([]float32{1}, n)
	}
	return s
}

// Normalization returns the statistics of the bags that data.normalize selects, or nil if
// features are used as stored. Bags count from 0. It fails if a feature varies too much for float32
// numbers, or if reading a dataset on disk fails.
func Normalization(spec *language.Spec, d *data.Dataset, trainBags []int) (*data.Normalization, error) {
	bags := trainBags
	switch spec.Data.Normalize.V {
	case "training":
	case "all":
		bags = d.AllBags()
	default:
		return nil, nil
	}
	z, err := data.NewNormalization(d, bags)
	if err != nil {
		return nil, err
	}
	for j, std := range z.Std {
		if math.Abs(float64(z.Mean[j]))+10*float64(std) > math.MaxFloat32 {
			return nil, tooWide(d, bags, j)
		}
	}
	return z, nil
}

// tooWide returns an error with the largest value of a feature, whose z-scores overflow in float32
// for other bags with the same mean and deviation.
func tooWide(d *data.Dataset, bags []int, feature int) error {
	dim := d.Dim()
	largest, inBag, instance := float32(0), 0, 0
	err := d.Each(bags, func(bag int, x []float32) error {
		for at := feature; at < len(x); at += dim {
			if math.Abs(float64(x[at])) > math.Abs(float64(largest)) {
				largest, inBag, instance = x[at], bag, at/dim
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return fmt.Errorf("%s, bag %d: feature %d of instance %d is %g: the deviation of this feature is too large for "+
		"float32 numbers; correct the value, or divide the feature by a constant",
		d.Name, inBag+1, feature+1, instance+1, largest)
}
