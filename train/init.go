package train

import (
	"fmt"
	"math"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/stream"
)

// InitParams draws the learned parameters of a program, row-major by name.
// Each parameter has its own random stream "param/"+name, so adding one to a
// model leaves the others as they were.
func InitParams(p *compile.Program, seed uint64) map[string][]float32 {
	params := make(map[string][]float32, len(p.Params))
	for _, param := range p.Params {
		values := make([]float32, extent(param.Shape))
		r := stream.New(seed, "param/"+param.Name)
		for i := range values {
			switch param.Init.Kind {
			case "uniform":
				values[i] = float32(param.Init.Scale * (2*r.Float64() - 1))
			case "normal":
				values[i] = float32(param.Init.Scale * r.NormFloat64())
			default: // constant
				values[i] = float32(param.Init.Scale)
			}
		}
		params[param.Name] = values
	}
	return params
}

// InitState is the state that training starts from: the drawn parameters, zero
// velocities and, when the program normalises, the statistics of the bags that
// the spec names (data.normalize). Bags counts from 0.
func InitState(p *compile.Program, d *data.Dataset, trainBags []int, seed uint64) *State {
	s := &State{Params: InitParams(p, seed), Velocity: map[string][]float32{}}
	for _, param := range p.Params {
		s.Velocity[param.Name] = make([]float32, extent(param.Shape))
	}
	if p.Normalize {
		bags := trainBags
		if p.Spec.Data.Normalize.V == "all" {
			bags = make([]int, d.Bags())
			for i := range bags {
				bags[i] = i
			}
		}
		s.Params[compile.ParamMean], s.Params[compile.ParamStd] = Statistics(d, bags)
	}
	return s
}

// Statistics gives the mean and standard deviation (with divisor n) of every
// feature over the instances of the bags, each [Dim]. A feature that never
// changes gets deviation 1, so that it becomes 0 rather than NaN.
func Statistics(d *data.Dataset, bags []int) (mean, std []float32) {
	dim := d.Dim()
	sum, n := make([]float64, dim), 0
	for _, b := range bags {
		for i, v := range d.Bag(b) {
			sum[i%dim] += float64(v)
		}
		n += d.Size(b)
	}
	for i := range sum {
		sum[i] /= float64(max(n, 1))
	}
	square := make([]float64, dim)
	for _, b := range bags {
		for i, v := range d.Bag(b) {
			diff := float64(v) - sum[i%dim]
			square[i%dim] += diff * diff
		}
	}
	mean, std = make([]float32, dim), make([]float32, dim)
	for i := range sum {
		mean[i] = float32(sum[i])
		std[i] = float32(math.Sqrt(square[i] / float64(max(n, 1))))
		// Rounding leaves a constant feature with a deviation that is tiny
		// beside its values; dividing by that would blow noise up.
		if float64(std[i]) <= 1e-7*math.Max(1e-20, math.Abs(sum[i])) {
			std[i] = 1
		}
	}
	return mean, std
}

// CheckState reports the first parameter of the program that a state lacks or
// holds in another size.
func CheckState(p *compile.Program, s *State) error {
	check := func(name string, want int) error {
		if v, ok := s.Params[name]; !ok || len(v) != want {
			return fmt.Errorf("the state has %d values of parameter %s, the program needs %d", len(v), name, want)
		}
		if v, ok := s.Velocity[name]; ok && len(v) != want {
			return fmt.Errorf("the state has %d velocities of parameter %s, the program needs %d", len(v), name, want)
		}
		return nil
	}
	for _, param := range p.Params {
		if err := check(param.Name, extent(param.Shape)); err != nil {
			return err
		}
	}
	if p.Normalize {
		for _, name := range []string{compile.ParamMean, compile.ParamStd} {
			if err := check(name, extent(p.Signature.Instance)); err != nil {
				return err
			}
		}
	}
	return nil
}

func extent(shape []int) int {
	n := 1
	for _, e := range shape {
		n *= e
	}
	return n
}
