// Trainings against traces of PyTorch.

package engines_test

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/internal/testkit/enginetest"
	"github.com/miplc/miplc/internal/testkit/modeltest"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/train"
)

// recording is a training in PyTorch, as the scripts in train/testdata/pytorch write it.
type recording struct {
	Spec         string   // file in the same folder, or the name of a shipped spec
	Sets         []string // overrides of settings
	Instance     []int
	Classes      int
	Sizes        []int     // instances of each bag
	Instances    []float32 // of all bags
	Candidates   []float32 // [bags, classes]
	Start        map[string][]float32
	ClassWeights []float32 // of the loss; nil: none
	Evaluated    []float32 // probabilities of all bags after the last step, computed as a prediction; nil: not recorded
	Steps        []struct {
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
}

// readRecording reads a recording and compiles its spec.
func readRecording(t testing.TB, path string) (*recording, *compile.Program) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	r := &recording{}
	if err := json.NewDecoder(z).Decode(r); err != nil {
		t.Fatal(err)
	}
	if strings.HasSuffix(r.Spec, ".yaml") {
		r.Spec = filepath.Join(filepath.Dir(path), r.Spec)
	}
	spec, err := language.Load(r.Spec, r.Sets...)
	if err != nil {
		t.Fatal(err)
	}
	return r, modeltest.Compiled(t, spec, compile.Signature{Instance: r.Instance, Classes: r.Classes})
}

// batch returns the batch of a step of the recording, or of all bags.
func (r *recording) batch(bags []int) *train.Batch {
	b, dim, k := &train.Batch{Bags: len(bags), ClassWeights: r.ClassWeights}, ndarray.Size(r.Instance), r.Classes
	for j, bag := range bags {
		first := 0
		for _, n := range r.Sizes[:bag] {
			first += n
		}
		n, set := r.Sizes[bag], r.Candidates[bag*k:(bag+1)*k]
		b.Instances = append(b.Instances, r.Instances[first*dim:(first+n)*dim]...)
		b.BagOf = append(b.BagOf, slices.Repeat([]int{j}, n)...)
		b.Candidates = append(b.Candidates, set...)
		size := float32(0)
		for _, v := range set {
			size += v
		}
		for _, v := range set {
			b.LabelWeights = append(b.LabelWeights, v/max(size, 1))
		}
	}
	return b
}

// steps returns the steps of the recording, and what PyTorch computed.
func (r *recording) steps(t *testing.T, name string, p *compile.Program) (*stepCase, trace) {
	t.Helper()
	c := &stepCase{name: name, program: p, states: []*train.State{{Params: r.Start}}, floors: map[string]float64{}}
	want := trace{}
	for i, s := range r.Steps {
		b := r.batch(s.Bags)
		b.Lambda, b.Epoch, b.Epochs, b.LR = s.Lambda, s.Epoch, p.Spec.Train.Epochs.V, s.LR
		if b.Position = (compile.Position{Update: i + 1}); s.Position != nil {
			b.Position = *s.Position
		}
		b.Masks = map[string][]float32{}
		for _, m := range p.Masks {
			for _, v := range s.Mask {
				b.Masks[m.Name] = append(b.Masks[m.Name], m.Scale()*min(v, 1))
			}
		}
		c.batches, c.bags = append(c.batches, b), append(c.bags, s.Bags)
		if s.Terms == nil {
			s.Terms = map[string]float64{"disambiguation": s.Disambiguation, "attention": s.Attention}
		}
		if len(s.Terms) != len(p.Terms) {
			t.Fatalf("%s: the loss has the terms %v, PyTorch has %v", name, p.Terms, s.Terms)
		}
		want.add(i, "loss", []float32{float32(s.Loss)})
		for term, v := range s.Terms {
			want.add(i, "loss term "+term, []float32{float32(v)})
			// A term may be much smaller than the loss.
			c.floors[fmt.Sprintf("loss term %s of step %d", term, i+1)] = 1e-3 * math.Abs(s.Loss)
		}
		want.add(i, "probabilities", s.Probabilities)
		want.add(i, "label weights", slices.Concat(s.Weights...))
		for param, v := range s.Params {
			want.add(i, param, v)
		}
		// The gradient of a bias that a softmax cancels consists of rounding errors, so it is compared relative to the
		// other gradients.
		least := largest(slices.Concat(slices.Collect(maps.Values(s.Velocity))...))
		for param, v := range s.Velocity {
			want.add(i, "velocity of "+param, v)
			c.floors[fmt.Sprintf("velocity of %s of step %d", param, i+1)] = 1e-2 * least
		}
	}
	if r.Evaluated != nil {
		all := make([]int, len(r.Sizes))
		for i := range all {
			all[i] = i
		}
		c.test, want["predictions"] = r.batch(all), r.Evaluated
	}
	return c, want
}

// The interpreter and the engine native reproduce twenty steps of plain PyTorch: losses, predictions, label weights and
// parameters. TestSteps compares the other engines with the interpreter; on a GPU, xla is compared with PyTorch too.
// The recordings are of DEMIPL by reading and bags a step (trace.py), of other shipped specs (pll.py, mil.py), of
// optimizers (optimizers.py) and of several labels (multi.py).
func TestPyTorchTraces(t *testing.T) {
	list := []maker{reference(), byNative()}
	if enginetest.OnPlugin() {
		list = compared(t)
	}
	paths, err := filepath.Glob(filepath.Join("..", "testdata", "pytorch", "trace-*.json.gz"))
	if err != nil || len(paths) < 40 {
		t.Fatalf("%d recordings, %v", len(paths), err)
	}
	worst := map[string]float64{}
	for _, path := range paths {
		r, p := readRecording(t, path)
		c, want := r.steps(t, filepath.Base(path), p)
		c.compare(t, list, want, worst)
	}
	t.Log(worst)
}
