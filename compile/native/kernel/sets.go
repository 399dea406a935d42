// Sets of kernels, one for each instruction set, and the choice of one.

package kernel

import (
	"fmt"
	"strings"
)

// Variable is the environment variable whose value users give to Choose, for tests and measurements.
const Variable = "MIPLC_NATIVE"

// Set is the kernels for one instruction set.
type Set struct {
	Name string // avx512, avx2, neon or go
	Run  [NumKernels]func(*Args)
}

// Sets returns the sets that this processor can run, the fastest first and plain Go last. Kernels that a set does not
// have are those in plain Go.
func Sets() []*Set {
	sets, plain := vectorSets(), goSet()
	for _, s := range sets {
		for k := range s.Run {
			if s.Run[k] == nil {
				s.Run[k] = plain.Run[k]
			}
		}
	}
	return append(sets, plain)
}

// Best returns the fastest set that this processor can run.
func Best() *Set { return Sets()[0] }

// Choose returns the set of a name, or the fastest for "". It is an error if there is no such set or if this processor
// cannot run it.
func Choose(name string) (*Set, error) {
	if name == "" {
		return Best(), nil
	}
	var names []string
	for _, s := range Sets() {
		if s.Name == name {
			return s, nil
		}
		names = append(names, s.Name)
	}
	return nil, fmt.Errorf("%s=%s: this processor has no such kernels; possible values: %s", Variable, name,
		strings.Join(names, ", "))
}
