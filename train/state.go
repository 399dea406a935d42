package train

import (
	"fmt"
	"slices"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/internal/ndarray"
)

// State is everything of an engine that a checkpoint must keep.
type State struct {
	// Params by name, row-major: the learned ones and, when the program
	// normalises, the statistics compile.ParamMean and compile.ParamStd.
	Params map[string][]float32
	// Velocity is the momentum of the optimiser, same shapes as the learned
	// parameters; one that is missing counts as zero.
	Velocity map[string][]float32
}

// NewState takes the vectors of a step graph apart, and adds the statistics of
// the normalisation by name. All values are copied.
func NewState(p *compile.Program, params, velocity []float32, statistics map[string][]float32) *State {
	s := &State{Params: p.Unflatten(params), Velocity: p.Unflatten(velocity)}
	for name, v := range statistics {
		s.Params[name] = slices.Clone(v)
	}
	return s
}

// Flat checks a state and gives it as an engine takes it: the vectors of the step
// graph, in the order of the program's parameters, and the statistics of the
// normalisation by name. All values are copied.
func (s *State) Flat(p *compile.Program) (params, velocity []float32, statistics map[string][]float32, err error) {
	if err = CheckState(p, s); err != nil {
		return nil, nil, nil, err
	}
	if params, err = p.Flatten(s.Params); err != nil {
		return nil, nil, nil, err
	}
	for _, q := range p.Params {
		v := s.Velocity[q.Name]
		if v == nil {
			v = make([]float32, ndarray.Size(q.Shape))
		}
		velocity = append(velocity, v...)
	}
	statistics = map[string][]float32{}
	for _, name := range p.Statistics() {
		statistics[name] = slices.Clone(s.Params[name])
	}
	return params, velocity, statistics, nil
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
		if err := check(param.Name, ndarray.Size(param.Shape)); err != nil {
			return err
		}
	}
	for _, name := range p.Statistics() {
		if err := check(name, ndarray.Size(p.Signature.Instance)); err != nil {
			return err
		}
	}
	return nil
}
