// Package traces holds engines to twenty training steps recorded from PyTorch
// (train/testdata/pytorch). It is for tests.
package traces

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/specs"
	"github.com/miplc/miplc/train"
)

// Names lists the kept traces: reading and bags a step.
var Names = []string{"trace-paper-b1", "trace-paper-b4", "trace-program-b1", "trace-program-b4"}

// Tolerance is the relative difference that losses and parameters may have.
const Tolerance = 1e-5

// Trace is one recording; see trace.py for its making.
type Trace struct {
	Spec       string
	Instance   []int
	Classes    int
	Sizes      []int     // instances of each bag
	Instances  []float32 // of all bags
	Candidates []float32 // [bags, classes]
	Start      map[string][]float32
	Steps      []Step
	dir        string
}

// Step is what went into one step and what came out.
type Step struct {
	Bags           []int
	Epoch          int
	LR             float64
	Lambda         float64
	Mask           []float32
	Loss           float64
	Disambiguation float64
	Attention      float64
	Probabilities  []float32
	Weights        [][]float32
	Params         map[string][]float32
}

// Load reads a kept trace.
func Load(t testing.TB, name string) *Trace {
	t.Helper()
	_, here, _, _ := runtime.Caller(0)
	dir := filepath.Join(filepath.Dir(here), "..", "testdata", "pytorch")
	f, err := os.Open(filepath.Join(dir, name+".json.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	tr := &Trace{dir: dir}
	if err := json.NewDecoder(z).Decode(tr); err != nil {
		t.Fatal(err)
	}
	return tr
}

// Program compiles the spec of the trace.
func (tr *Trace) Program(t testing.TB) *compile.Program {
	t.Helper()
	spec, err := specs.Load(filepath.Join(tr.dir, tr.Spec), specs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := compile.Compile(spec, compile.Signature{Instance: tr.Instance, Classes: tr.Classes})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Batches gives the batches of all steps. The label weights of a step are
// those that the recording had before it.
func (tr *Trace) Batches(p *compile.Program) []*train.Batch {
	offsets, dim := []int{0}, 1
	for _, n := range tr.Sizes {
		offsets = append(offsets, offsets[len(offsets)-1]+n)
	}
	for _, e := range tr.Instance {
		dim *= e
	}
	k := tr.Classes
	weights := make([][]float32, len(tr.Sizes))
	for i := range weights {
		s := tr.Candidates[i*k : (i+1)*k]
		size := float32(0)
		for _, v := range s {
			size += v
		}
		for _, v := range s {
			weights[i] = append(weights[i], v/size)
		}
	}
	var batches []*train.Batch
	for _, step := range tr.Steps {
		b := &train.Batch{Bags: len(step.Bags), Lambda: step.Lambda, Epoch: step.Epoch,
			Epochs: p.Spec.Train.Epochs.V, LR: step.LR, Masks: map[string][]float32{}}
		for j, i := range step.Bags {
			b.Instances = append(b.Instances, tr.Instances[offsets[i]*dim:offsets[i+1]*dim]...)
			for range tr.Sizes[i] {
				b.BagOf = append(b.BagOf, j)
			}
			b.Candidates = append(b.Candidates, tr.Candidates[i*k:(i+1)*k]...)
			b.Weights = append(b.Weights, weights[i]...)
			weights[i] = step.Weights[j]
		}
		for _, m := range p.Masks {
			b.Masks[m.Name] = step.Mask
		}
		batches = append(batches, b)
	}
	return batches
}

// Check runs every trace through an engine and compares losses, predictions,
// label weights and parameters with PyTorch's.
func Check(t *testing.T, newEngine func(p *compile.Program, params map[string][]float32) (train.Engine, error)) {
	for _, name := range Names {
		t.Run(name, func(t *testing.T) {
			tr := Load(t, name)
			p := tr.Program(t)
			e, err := newEngine(p, tr.Start)
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			for i, b := range tr.Batches(p) {
				if err := tr.checkStep(e, &tr.Steps[i], b); err != nil {
					t.Fatalf("step %d: %v", i+1, err)
				}
			}
		})
	}
}

func (tr *Trace) checkStep(e train.Engine, want *Step, b *train.Batch) error {
	got, err := e.Step(b)
	if err != nil {
		return err
	}
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"loss", got.Loss, want.Loss},
		{"loss term disambiguation", got.Terms["disambiguation"], want.Disambiguation},
		{"loss term attention", got.Terms["attention"], want.Attention},
	} {
		if d := math.Abs(c.got-c.want) / math.Abs(c.want); !(d <= Tolerance) {
			return fmt.Errorf("%s is %v, PyTorch has %v (relative difference %.2g)", c.name, c.got, c.want, d)
		}
	}
	if err := compare("probabilities", got.Probabilities, want.Probabilities); err != nil {
		return err
	}
	for j := range want.Bags {
		if err := compare("label weights", got.Weights[j*tr.Classes:(j+1)*tr.Classes], want.Weights[j]); err != nil {
			return err
		}
	}
	if want.Params == nil {
		return nil
	}
	state, err := e.State()
	if err != nil {
		return err
	}
	for name, v := range want.Params {
		if err := compare(name, state.Params[name], v); err != nil {
			return err
		}
	}
	return nil
}

// compare measures the largest difference against the largest value.
func compare(what string, got, want []float32) error {
	if len(got) != len(want) {
		return fmt.Errorf("%s has %d numbers, PyTorch has %d", what, len(got), len(want))
	}
	diff, scale := 0.0, 0.0
	for i := range want {
		diff = math.Max(diff, math.Abs(float64(got[i])-float64(want[i])))
		scale = math.Max(scale, math.Abs(float64(want[i])))
	}
	if !(diff <= Tolerance*scale) {
		return fmt.Errorf("%s differs from PyTorch by %.2g of %.2g", what, diff, scale)
	}
	return nil
}
