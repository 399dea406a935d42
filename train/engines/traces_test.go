// Trainings against traces of PyTorch.

package engines_test

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/internal/testkit/enginetest"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/train"
)

// traces lists the kept ones: of DEMIPL by reading and bags a step (trace.py), of other shipped specs by name (pll.py,
// mil.py), of optimizers (optimizers.py) and of several labels (multi.py).
var traces = []string{
	"trace-batch-norm", "trace-accumulate", "trace-class-weights", "trace-clip", "trace-adam", "trace-adam-clip",
	"trace-adamw", "trace-rmsprop", "trace-rmsprop-momentum",
	"trace-paper-b1", "trace-paper-b4", "trace-program-b1", "trace-program-b4",
	"trace-proden-mean", "trace-proden-maxmin-mlp", "trace-rc-mean-mlp", "trace-rc-maxmin",
	"trace-lws-mean", "trace-lws-maxmin-mlp", "trace-elimipl", "trace-miplma",
	"trace-demipl-mlp", "trace-abmil", "trace-gated-abmil", "trace-instance-max", "trace-instance-mean",
	"trace-dsmil", "trace-clam-sb", "trace-clam-mb", "trace-acmil", "trace-transmil", "trace-keys", "trace-norms",
	"trace-promipl", "trace-agopmipl", "trace-demipl-cdl", "trace-fastmipl", "trace-uamipl",
	"trace-multi", "trace-multi-class-weights",
}

// traceTolerance is the largest accepted relative difference of losses and parameters.
const traceTolerance = 1e-5

// trace is one recording. trace.py, pll.py and mil.py write them.
type trace struct {
	Spec       string   // file in the same folder, or the name of a shipped spec
	Sets       []string // overrides of settings
	Instance   []int
	Classes    int
	Sizes      []int     // instances of each bag
	Instances  []float32 // of all bags
	Candidates []float32 // [bags, classes]
	Start      map[string][]float32
	// ClassWeights are the class weights of the loss; nil: none.
	ClassWeights []float32
	Steps        []step
	// Evaluated are the probabilities of all bags after the last step, computed as a prediction.
	Evaluated []float32
	dir       string
}

// step contains the inputs and results of one step.
type step struct {
	Bags           []int
	Epoch          int
	LR             float64
	Lambda         float64
	Mask           []float32
	Position       *compile.Position // nil: the only step of its update
	Loss           float64
	Disambiguation float64            // loss terms of DEMIPL
	Attention      float64            // likewise
	Terms          map[string]float64 // loss terms of other specs, by name
	Probabilities  []float32
	Weights        [][]float32
	Params         map[string][]float32 // kept for some steps
	// for the same steps; after the first step it is the gradient plus the weight decay
	Velocity map[string][]float32
}

// load reads a recording.
func load(t testing.TB, name string) *trace {
	t.Helper()
	dir := filepath.Join("..", "testdata", "pytorch")
	f, err := os.Open(filepath.Join(dir, name+".json.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	tr := &trace{dir: dir}
	if err := json.NewDecoder(z).Decode(tr); err != nil {
		t.Fatal(err)
	}
	return tr
}

// program compiles the spec of the trace.
func (tr *trace) program(t testing.TB) *compile.Program {
	t.Helper()
	name := tr.Spec
	if strings.HasSuffix(name, ".yaml") {
		name = filepath.Join(tr.dir, name)
	}
	spec, err := language.Load(name, tr.Sets...)
	if err != nil {
		t.Fatal(err)
	}
	p, err := compile.Compile(spec, compile.Signature{Instance: tr.Instance, Classes: tr.Classes})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// batches returns the batches of all steps. The label weights of a step are those that the recording
// had before the step.
func (tr *trace) batches(p *compile.Program) []*train.Batch {
	offsets, dim := []int{0}, ndarray.Size(tr.Instance)
	for _, n := range tr.Sizes {
		offsets = append(offsets, offsets[len(offsets)-1]+n)
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
			weights[i] = append(weights[i], v/max(size, 1))
		}
	}
	var batches []*train.Batch
	for _, step := range tr.Steps {
		b := &train.Batch{Bags: len(step.Bags), Lambda: step.Lambda, Epoch: step.Epoch,
			Epochs: p.Spec.Train.Epochs.V, LR: step.LR, Position: step.position(len(batches)),
			ClassWeights: tr.ClassWeights, Masks: map[string][]float32{}}
		for j, i := range step.Bags {
			b.Instances = append(b.Instances, tr.Instances[offsets[i]*dim:offsets[i+1]*dim]...)
			for range tr.Sizes[i] {
				b.BagOf = append(b.BagOf, j)
			}
			b.Candidates = append(b.Candidates, tr.Candidates[i*k:(i+1)*k]...)
			b.LabelWeights = append(b.LabelWeights, weights[i]...)
			weights[i] = step.Weights[j]
		}
		for _, m := range p.Masks {
			kept := make([]float32, len(step.Mask))
			for i, v := range step.Mask {
				if v != 0 {
					kept[i] = m.Scale()
				}
			}
			b.Masks[m.Name] = kept
		}
		batches = append(batches, b)
	}
	return batches
}

// position returns the position of the step with the given index.
func (s *step) position(index int) compile.Position {
	if s.Position == nil {
		return compile.Position{Update: index + 1}
	}
	return *s.Position
}

// The interpreter and the engine native reproduce twenty steps of plain PyTorch: losses, predictions, label weights and
// parameters. TestSteps compares the other engines with the interpreter; on a GPU, xla is compared with PyTorch too.
func TestPyTorchTraces(t *testing.T) {
	list := []maker{reference(), byNative()}
	if enginetest.OnPlugin() {
		list = compared(t)
	}
	for _, m := range list {
		for _, name := range traces {
			t.Run(m.name+"/"+name, func(t *testing.T) {
				tr := load(t, name)
				p := tr.program(t)
				e := m.started(t, p, &train.State{Params: tr.Start})
				defer e.Close()
				for i, b := range tr.batches(p) {
					if err := tr.checkStep(p, e, &tr.Steps[i], b); err != nil {
						t.Fatalf("step %d: %v", i+1, err)
					}
				}
				if tr.Evaluated == nil {
					return
				}
				var bagOf []int
				for bag, n := range tr.Sizes {
					bagOf = append(bagOf, slices.Repeat([]int{bag}, n)...)
				}
				got, _, err := e.Predict(tr.Instances, bagOf, len(tr.Sizes))
				if err == nil {
					err = compare("predictions", got, tr.Evaluated)
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
	}
}

func (tr *trace) checkStep(p *compile.Program, e train.Engine, want *step, b *train.Batch) error {
	got, err := e.Step(b)
	if err != nil {
		return err
	}
	terms := want.Terms
	if terms == nil {
		terms = map[string]float64{"disambiguation": want.Disambiguation, "attention": want.Attention}
	}
	if len(got.Terms) != len(terms) {
		return fmt.Errorf("the loss has the terms %v, PyTorch has %v", got.Terms, terms)
	}
	for i, name := range p.Terms {
		if err := compareNumber("loss term "+name, got.Terms[i], terms[name], want.Loss); err != nil {
			return err
		}
	}
	if err := compareNumber("loss", got.Loss, want.Loss, want.Loss); err != nil {
		return err
	}
	if err := compare("probabilities", got.Probabilities, want.Probabilities); err != nil {
		return err
	}
	for j := range want.Bags {
		if err := compare("label weights", got.LabelWeights[j*tr.Classes:(j+1)*tr.Classes], want.Weights[j]); err != nil {
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
	// The gradient of a bias that a softmax cancels consists of rounding errors, so it is compared
	// relative to the other gradients.
	floor := 0.0
	for _, v := range want.Velocity {
		floor = math.Max(floor, 1e-2*largest(v))
	}
	if want.Velocity == nil {
		return nil
	}
	velocity := p.ParamViews(state.Optimizer[compile.InVelocity])
	for name, v := range want.Velocity {
		if err := compareTo("velocity of "+name, velocity[name], v, math.Max(floor, largest(v))); err != nil {
			return err
		}
	}
	return nil
}

// compareNumber compares relative to the value, or to the loss if a term is much smaller than the
// loss.
func compareNumber(what string, got, want, loss float64) error {
	scale := math.Max(math.Abs(want), 1e-3*math.Abs(loss))
	if d := math.Abs(got-want) / scale; !(d <= enginetest.Tolerance(traceTolerance)) {
		return fmt.Errorf("%s is %v, PyTorch has %v (relative difference %.2g)", what, got, want, d)
	}
	return nil
}

// compare compares relative to the largest value.
func compare(what string, got, want []float32) error {
	return compareTo(what, got, want, largest(want))
}

func largest(values []float32) float64 {
	m := 0.0
	for _, v := range values {
		m = math.Max(m, math.Abs(float64(v)))
	}
	return m
}

func compareTo(what string, got, want []float32, scale float64) error {
	if len(got) != len(want) {
		return fmt.Errorf("%s has %d numbers, PyTorch has %d", what, len(got), len(want))
	}
	diff := 0.0
	for i := range want {
		diff = math.Max(diff, math.Abs(float64(got[i])-float64(want[i])))
	}
	if !(diff <= enginetest.Tolerance(traceTolerance)*scale) {
		return fmt.Errorf("%s differs from PyTorch by %.2g of %.2g", what, diff, scale)
	}
	return nil
}
