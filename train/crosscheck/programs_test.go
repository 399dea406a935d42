package crosscheck_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/stream"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/language/spectest"
	"github.com/miplc/miplc/specs"
	"github.com/miplc/miplc/train"
	"github.com/miplc/miplc/train/xla/pjrt/pjrttest"
)

// light leaves out most random specs and the images in the slow tests: with go
// test -short, and with the race detector, under which they take minutes.
var light bool

func TestMain(m *testing.M) {
	flag.Parse()
	light = light || testing.Short()
	os.Exit(m.Run())
}

// randomSpecs is how many random specs the tests of this package draw.
func randomSpecs() uint64 {
	switch {
	case light && pjrttest.OnPlugin(): // XLA takes long to compile
		return 8
	case light:
		return 20
	}
	return 200
}

func isImage(p *compile.Program) bool { return len(p.Signature.Instance) == 3 }

// trained lists the shipped specs that have a model trained by gradient steps.
func trained(t testing.TB) []string {
	t.Helper()
	return slices.DeleteFunc(specs.Models(), func(name string) bool {
		spec, err := language.Load(name, language.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return len(spec.Model.Blocks) == 0 && len(spec.Model.Let) == 0
	})
}

// shipped compiles a shipped spec: 7 features, 5 classes, or images of 16 by 16
// where it takes images, the least that its two convolutions fit.
func shipped(t testing.TB, name string, set ...string) *compile.Program {
	t.Helper()
	spec, err := language.Load(name, language.Options{Set: set})
	if err != nil {
		t.Fatal(err)
	}
	sig := compile.Signature{Instance: []int{7}, Classes: 5}
	if len(spec.Data.Shape.V) > 0 {
		sig.Instance = []int{1, 16, 16}
		spec.Data.Shape.V = sig.Instance
	}
	return compiled(t, name, spec, sig)
}

// random compiles the random spec of a seed.
func random(t testing.TB, seed uint64) *compile.Program {
	t.Helper()
	return parsed(t, fmt.Sprintf("random%d", seed), spectest.Random(seed))
}

// parsed compiles a spec whose data.generated says what its data looks like.
func parsed(t testing.TB, name, text string) *compile.Program {
	t.Helper()
	spec, err := language.Parse(name+".yaml", []byte(text), language.Options{})
	if err != nil {
		t.Fatal(err)
	}
	g := spec.Data.Generated
	sig, err := compile.SignatureOf(spec, []int{g.Features.V}, g.Classes.V)
	if err != nil {
		t.Fatal(err)
	}
	return compiled(t, name, spec, sig)
}

func compiled(t testing.TB, name string, spec *language.Spec, sig compile.Signature) *compile.Program {
	t.Helper()
	p, err := compile.Compile(spec, sig)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return p
}

func volume(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}

// start gives the state that training starts from. Parameters that start as
// zeros or ones move away from there, where much would be hidden.
func start(p *compile.Program, seed uint64) *train.State {
	s := &train.State{Params: train.InitParams(p, seed), Velocity: map[string][]float32{}}
	for _, q := range p.Params {
		if q.Init.Kind == "constant" {
			r := stream.New(seed, "moved "+q.Name)
			for i := range s.Params[q.Name] {
				s.Params[q.Name][i] += float32(0.2 * r.NormFloat64())
			}
		}
	}
	if p.Normalize {
		r := stream.New(seed, "statistics")
		for range volume(p.Signature.Instance) {
			s.Params[compile.ParamMean] = append(s.Params[compile.ParamMean], float32(r.NormFloat64()))
			s.Params[compile.ParamStd] = append(s.Params[compile.ParamStd], 0.5+float32(r.Float64()))
		}
	}
	return s
}

// batch draws normalised bags of the given sizes with candidates, label weights
// and dropout masks.
func batch(p *compile.Program, seed uint64, sizes ...int) *train.Batch {
	r := stream.New(seed, "crosscheck batch")
	b := &train.Batch{Bags: len(sizes), Lambda: 0.7, Epoch: 3, Epochs: 10, LR: 0.05, Masks: map[string][]float32{}}
	for bag, n := range sizes {
		for range n {
			b.BagOf = append(b.BagOf, bag)
		}
	}
	n, k := len(b.BagOf), p.Signature.Classes
	b.Instances = make([]float32, n*volume(p.Signature.Instance))
	for i := range b.Instances {
		b.Instances[i] = float32(r.NormFloat64())
	}
	b.Candidates, b.Weights = make([]float32, b.Bags*k), make([]float32, b.Bags*k)
	for bag := range b.Bags {
		first := r.IntN(k)
		second := (first + 1 + r.IntN(k-1)) % k
		share := 0.2 + 0.6*float32(r.Float64())
		b.Candidates[bag*k+first], b.Candidates[bag*k+second] = 1, 1
		b.Weights[bag*k+first], b.Weights[bag*k+second] = share, 1-share
	}
	for _, m := range p.Masks {
		values := make([]float32, volume(m.Shape.Concrete(n, b.Bags)))
		for i := range values {
			if r.Float64() >= m.Drop {
				values[i] = float32(1 / (1 - m.Drop))
			}
		}
		b.Masks[m.Name] = values
	}
	return b
}

// environment gives a batch and parameters to the interpreter.
func environment(g *graph.Graph, b *train.Batch, params map[string][]float32) graph.Env {
	env := graph.Env{N: len(b.BagOf), B: b.Bags, Values: map[string]*graph.Tensor{}}
	floats := map[string][]float32{
		compile.InInstances: b.Instances, compile.InCandidates: b.Candidates, compile.InWeights: b.Weights,
		compile.InLambda: {float32(b.Lambda)}, compile.InEpoch: {float32(b.Epoch)}, compile.InEpochs: {float32(b.Epochs)},
	}
	for _, n := range g.Nodes {
		v, mask := floats[n.Name], b.Masks[n.Name]
		switch {
		case n.Op == graph.OpInput && n.Type == graph.Int:
			env.Values[n.Name] = graph.NewInts(b.BagOf...)
			continue
		case n.Op == graph.OpParam:
			v = params[n.Name]
		case n.Op != graph.OpInput:
			continue
		case v == nil:
			v = mask
		}
		env.Values[n.Name] = graph.NewTensor(n.Shape.Concrete(env.N, env.B), wide(v)...)
	}
	return env
}

func wide(x []float32) []float64 {
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = float64(v)
	}
	return y
}

func evaluate(t testing.TB, g *graph.Graph, env graph.Env) map[string]*graph.Tensor {
	t.Helper()
	out, err := graph.Eval(g, env)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
