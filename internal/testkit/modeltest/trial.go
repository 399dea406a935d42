// Programs of shipped and random specs, their states and batches, and short trials, for tests of engines.

package modeltest

import (
	"fmt"
	"maps"
	"testing"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/data/generate"
	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/train"
)

// Shipped compiles a shipped spec for 7 features and 5 classes, or for images of 16 by 16, the
// smallest for its two convolutions.
func Shipped(t testing.TB, name string, set ...string) *compile.Program {
	t.Helper()
	spec, err := language.Load(name, set...)
	if err != nil {
		t.Fatal(err)
	}
	sig := compile.Signature{Instance: []int{7}, Classes: 5}
	if len(spec.Data.Shape.V) > 0 {
		sig.Instance = []int{1, 16, 16}
		spec.Data.Shape.V = sig.Instance
	}
	return Compiled(t, spec, sig)
}

// RandomProgram compiles the random spec of a seed.
func RandomProgram(t testing.TB, seed uint64) *compile.Program {
	t.Helper()
	return Parsed(t, fmt.Sprintf("random%d", seed), RandomSpec(seed))
}

// Parsed compiles a spec with data.generated.
func Parsed(t testing.TB, name, text string) *compile.Program {
	t.Helper()
	spec, err := language.Parse(name+".yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	g := spec.Data.Generated
	sig, err := compile.SignatureOf(spec, []int{g.Features.V}, g.Classes.V)
	if err != nil {
		t.Fatal(err)
	}
	return Compiled(t, spec, sig)
}

// Compiled compiles a spec.
func Compiled(t testing.TB, spec *language.Spec, sig compile.Signature) *compile.Program {
	t.Helper()
	p, err := compile.Compile(spec, sig)
	if err != nil {
		t.Fatalf("%s: %v", spec.Name.V, err)
	}
	return p
}

// Start returns an initial state. Unlike in training, parameters whose initial values are constant
// are random, because zeros and ones would hide errors.
func Start(p *compile.Program, seed uint64) *train.State {
	s := &train.State{Params: train.InitParams(p, seed)}
	for _, q := range p.Params {
		if q.Init.Kind == "constant" {
			r := ndarray.NewStream(seed, "parity parameters "+q.Name)
			for i := range s.Params[q.Name] {
				s.Params[q.Name][i] += float32(0.2 * r.NormFloat64())
			}
		}
	}
	if p.Normalize {
		r := ndarray.NewStream(seed, "parity statistics")
		for range ndarray.Size(p.Signature.Instance) {
			s.Params[compile.ParamMean] = append(s.Params[compile.ParamMean], float32(r.NormFloat64()))
			s.Params[compile.ParamStd] = append(s.Params[compile.ParamStd], 0.5+float32(r.Float64()))
		}
	}
	return s
}

// Batch draws normalised bags of the given sizes with two candidates each, label weights
// and dropout masks.
func Batch(p *compile.Program, seed uint64, sizes ...int) *train.Batch {
	r := ndarray.NewStream(seed, "crosscheck batch")
	b := &train.Batch{Bags: len(sizes), Lambda: 0.7, Epoch: 3, Epochs: 10, LR: 0.05, Masks: map[string][]float32{}}
	for bag, n := range sizes {
		for range n {
			b.BagOf = append(b.BagOf, bag)
		}
	}
	n, k := len(b.BagOf), p.Signature.Classes
	b.Instances = make([]float32, n*ndarray.Size(p.Signature.Instance))
	for i := range b.Instances {
		b.Instances[i] = float32(r.NormFloat64())
	}
	b.Candidates, b.LabelWeights = make([]float32, b.Bags*k), make([]float32, b.Bags*k)
	for bag := range b.Bags {
		first := r.IntN(k)
		second := (first + 1 + r.IntN(k-1)) % k
		share := 0.2 + 0.6*float32(r.Float64())
		b.Candidates[bag*k+first], b.Candidates[bag*k+second] = 1, 1
		b.LabelWeights[bag*k+first], b.LabelWeights[bag*k+second] = share, 1-share
	}
	if p.WeighsClasses() {
		for range k {
			b.ClassWeights = append(b.ClassWeights, 0.5+r.Float32())
		}
	}
	for _, m := range p.Masks {
		values := make([]float32, ndarray.Size(m.Shape.Concrete(n, b.Bags)))
		for i := range values {
			if r.Float64() >= m.Drop {
				values[i] = m.Scale()
			}
		}
		b.Masks[m.Name] = values
	}
	return b
}

// Environment returns a batch and parameters as inputs of the interpreter.
func Environment(p *compile.Program, g *graph.Graph, b *train.Batch, params map[string][]float32) graph.Env {
	env := graph.Env{N: len(b.BagOf), B: b.Bags, Values: map[string]*graph.Tensor{}}
	floats := map[string][]float32{
		compile.InInstances: b.Instances, compile.InCandidates: b.Candidates, compile.InLabelWeights: b.LabelWeights,
		compile.InLambda: {float32(b.Lambda)}, compile.InEpoch: {float32(b.Epoch)}, compile.InEpochs: {float32(b.Epochs)},
		compile.InClassWeights: b.ClassWeights,
	}
	maps.Copy(floats, b.Masks)
	for _, n := range g.Nodes {
		v := floats[n.Name]
		switch {
		case n.Op == graph.OpInput && n.Type == graph.Int:
			env.Values[n.Name] = graph.NewInts(b.BagOf...)
			continue
		case n.Op == graph.OpParam:
			v = params[n.Name]
		case n.Op != graph.OpInput:
			continue
		}
		env.Values[n.Name] = graph.NewTensor(n.Shape.Concrete(env.N, env.B), ndarray.Convert[float64](v)...)
	}
	return env
}

// Quickstart returns a trial of the shipped spec quickstart on a small dataset.
func Quickstart(t testing.TB, bags, epochs, batch int) *train.Trial {
	t.Helper()
	spec, err := language.Load("quickstart")
	if err != nil {
		t.Fatal(err)
	}
	spec.Train.Epochs.V, spec.Train.Batch.V = epochs, batch
	o := generate.DefaultPrototypes
	o.Bags = bags
	d, err := generate.Prototypes(o)
	if err != nil {
		t.Fatal(err)
	}
	return Trial(t, spec, d)
}

// Trial returns a trial of a spec on a dataset, reshaped and split as in the spec.
func Trial(t testing.TB, spec *language.Spec, d *data.Dataset) *train.Trial {
	t.Helper()
	sig, err := compile.SignatureOf(spec, d.Shape, d.Classes)
	if err != nil {
		t.Fatal(err)
	}
	if d, err = d.Reshape(sig.Instance); err != nil {
		t.Fatal(err)
	}
	s := spec.Data.Split
	split, err := data.RandomSplit(d.Bags(), d.TrueLists(), data.SplitSettings{Train: s.Train.V,
		Validation: s.Validation.V, Stratify: s.Stratify.V, Seed: uint64(s.Seed.V)})
	if err != nil {
		t.Fatal(err)
	}
	return &train.Trial{Program: Compiled(t, spec, sig), Data: d, Split: split}
}
