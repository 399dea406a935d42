// The state stays in place between epochs.

package xla

import (
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/internal/testkit/enginetest"
	"github.com/miplc/miplc/language"
)

// Parameters and velocity keep their place in device memory from epoch to epoch.
func TestStateStaysInPlace(t *testing.T) {
	enginetest.OnlyOnPlugin(t) // the pure Go executor allocates new memory for each result
	backend := enginetest.Backend(t)
	spec, err := language.Load("quickstart")
	if err != nil {
		t.Fatal(err)
	}
	p, err := compile.Compile(spec, compile.Signature{Instance: []int{500}, Classes: 3})
	if err != nil {
		t.Fatal(err)
	}
	m, err := NewGraphs(p)
	if err != nil {
		t.Fatal(err)
	}
	program, err := m.Epoch(backend, Layout{Trials: 2, Steps: 1, Batch: 1, N: 1, Bags: 1, Rows: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close()
	in, at := make([]compute.Buffer, len(program.Inputs)), map[string]*float32{}
	for i, port := range program.Inputs {
		flat := map[dtypes.DType]any{dtypes.Float32: make([]float32, port.Shape.Size()), dtypes.Int32: make([]int32,
			port.Shape.Size())}[port.Shape.DType]
		if in[i], err = backend.BufferFromFlatData(0, flat, port.Shape); err != nil {
			t.Fatal(err)
		}
		if program.UsesUp(i) {
			at[port.Name] = place(t, in[i])
		}
	}
	out, err := program.Run(in)
	if err != nil {
		t.Fatal(err)
	}
	for i, port := range program.Outputs {
		if port.Name == OutTrace {
			continue
		}
		if before := at[port.Name]; before == nil || before != place(t, out[i]) {
			t.Errorf("%s moved", port.Name)
		}
	}
	if len(at) != 2 {
		t.Errorf("%d inputs are donated, want parameters and velocity", len(at))
	}
}

// place returns the address of the values of a buffer.
func place(t *testing.T, b compute.Buffer) *float32 {
	t.Helper()
	flat, err := b.Data()
	if err != nil {
		t.Fatal(err)
	}
	return &flat.([]float32)[0]
}
