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
	// Optimizer has the vectors [P] of the optimiser by name, see
	// compile.Program.OptimizerState. A missing one counts as zeros.
	Optimizer map[string][]float32
}

// NewState makes a state from the vectors of a step graph by name, see
// compile.Program.StateVectors, and the statistics of the normalisation by name. All
// values are copied.
func NewState(p *compile.Program, vectors, statistics map[string][]float32) *State {
	s := &State{Params: p.Unflatten(vectors[compile.InParams]), Optimizer: map[string][]float32{}}
	for _, name := range p.OptimizerState() {
		s.Optimizer[name] = slices.Clone(vectors[name])
	}
	for name, v := range statistics {
		s.Params[name] = slices.Clone(v)
	}
	return s
}

// Flat checks a state and returns it as engines take it: the vectors of the step graph by
// name, in the order of the program's parameters, and the statistics of the normalisation
// by name. All values are copied.
func (s *State) Flat(p *compile.Program) (vectors, statistics map[string][]float32, err error) {
	if err = CheckState(p, s); err != nil {
		return nil, nil, err
	}
	vectors, statistics = map[string][]float32{}, map[string][]float32{}
	if vectors[compile.InParams], err = p.Flatten(s.Params); err != nil {
		return nil, nil, err
	}
	for _, name := range p.OptimizerState() {
		if vectors[name] = slices.Clone(s.Optimizer[name]); vectors[name] == nil {
			vectors[name] = make([]float32, p.FlatSize())
		}
	}
	for _, name := range p.Statistics() {
		statistics[name] = slices.Clone(s.Params[name])
	}
	return vectors, statistics, nil
}

// CheckState reports the first parameter of the program that a state lacks or
// holds in another size.
func CheckState(p *compile.Program, s *State) error {
	check := func(name string, want int) error {
		if v, ok := s.Params[name]; !ok || len(v) != want {
			return fmt.Errorf("the state has %d values of parameter %s, the program needs %d", len(v), name, want)
		}
		return nil
	}
	for _, param := range p.Params {
		if err := check(param.Name, ndarray.Size(param.Shape)); err != nil {
			return err
		}
	}
	for _, name := range p.OptimizerState() {
		if v, ok := s.Optimizer[name]; ok && len(v) != p.FlatSize() {
			return fmt.Errorf("the state has %d values of the vector %s of the optimizer, the program needs %d", len(v), name, p.FlatSize())
		}
	}
	for _, name := range p.Statistics() {
		if err := check(name, ndarray.Size(p.Signature.Instance)); err != nil {
			return err
		}
	}
	return nil
}
