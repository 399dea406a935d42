// The graphs of shipped specs, their values against the paper, and shape errors at their place.

package compile_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/internal/testkit/testsupport"
	"github.com/miplc/miplc/language"
)

// signature returns the signature that the dataset of a shipped spec has.
func signature(s *language.Spec) compile.Signature {
	if len(s.Data.Shape.V) > 0 {
		return compile.Signature{Instance: s.Data.Shape.V, Classes: 5}
	}
	return compile.Signature{Instance: []int{38}, Classes: 13}
}

func load(t *testing.T, name string) *compile.Program {
	t.Helper()
	spec, err := language.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	p, err := compile.Compile(spec, signature(spec))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func parse(t *testing.T, src string) (*compile.Program, error) { return parseAs(t, src, 7) }

// parseAs compiles a spec for instances of the given shape.
func parseAs(t *testing.T, src string, instance ...int) (*compile.Program, error) {
	t.Helper()
	spec, err := language.Parse("test.yaml", []byte(src))
	if err != nil {
		t.Fatalf("the spec should be readable: %v", err)
	}
	return compile.Compile(spec, compile.Signature{Instance: instance, Classes: 5})
}

func TestShippedSpecsGolden(t *testing.T) {
	for _, name := range language.TrainedNames() {
		t.Run(name, func(t *testing.T) {
			p := load(t, name)
			var text strings.Builder
			for _, q := range p.Params {
				fmt.Fprintf(&text, "param %s %v %s %.6g\n", q.Name, q.Shape, q.Init.Kind, q.Init.Scale)
			}
			for _, m := range p.Masks {
				fmt.Fprintf(&text, "mask %s %v %g\n", m.Name, m.Shape, m.Drop)
			}
			text.WriteString(p.Train.Text() + p.Infer.Text())
			testsupport.CheckGolden(t, filepath.Join("testdata", name+".golden"), text.String())
		})
	}
}

// randomEnv feeds a program with bags of the given sizes.
func randomEnv(p *compile.Program, g *graph.Graph, sizes []int) graph.Env {
	rng := rand.New(rand.NewPCG(7, 7))
	n := 0
	var bagOf []int
	for b, size := range sizes {
		n += size
		for range size {
			bagOf = append(bagOf, b)
		}
	}
	env := graph.Env{N: n, B: len(sizes), Values: map[string]*graph.Tensor{}}
	k := p.Signature.Classes
	for _, node := range append(g.ByOp(graph.OpInput), g.ByOp(graph.OpParam)...) {
		shape := node.Shape.Concrete(n, len(sizes))
		size := ndarray.Size(shape)
		v := &graph.Tensor{Shape: shape, Data: make([]float64, size)}
		switch node.Name {
		case compile.InBagOf:
			v.Data, v.Ints = nil, bagOf
		case compile.InCandidates, compile.InLabelWeights:
			for i := range v.Data {
				if i%k == (i/k)%k || i%k == (i/k+1)%k {
					v.Data[i] = 1
					if node.Name == compile.InLabelWeights {
						v.Data[i] = 0.5
					}
				}
			}
		case compile.InLambda:
			v.Data[0] = 0.25
		case compile.ParamStd:
			for i := range v.Data {
				v.Data[i] = 1 + rng.Float64()
			}
		default:
			for i := range v.Data {
				v.Data[i] = rng.NormFloat64()
			}
		}
		env.Values[node.Name] = v
	}
	return env
}

func TestEquationsGiveTheNumbersOfTheBlocks(t *testing.T) {
	blocks, equations := load(t, "demipl"), load(t, "demipl-equations")
	env := randomEnv(blocks, blocks.Train, []int{3, 1, 5})
	want, err := graph.Eval(blocks.Train, env)
	if err != nil {
		t.Fatal(err)
	}
	got, err := graph.Eval(equations.Train, env)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]string{"loss.disambiguation": "loss.label", "loss.attention": "loss.score"}
	for name, w := range want {
		g := got[name]
		if other := names[name]; other != "" {
			g = got[other]
		}
		for i := range w.Data {
			if math.Abs(w.Data[i]-g.Data[i]) > 1e-12 {
				t.Fatalf("%s[%d]: blocks %v, equations %v", name, i, w.Data[i], g.Data[i])
			}
		}
	}
}

// TestPaperFormula compares a program with equations 2 to 8 of the paper, written in Go.
func TestPaperFormula(t *testing.T) {
	p := load(t, "demipl")
	sizes := []int{4, 2}
	env := randomEnv(p, p.Train, sizes)
	out, err := graph.Eval(p.Train, env)
	if err != nil {
		t.Fatal(err)
	}
	v := func(name string) []float64 { return env.Values[name].Data }
	d, k := 38, 13
	sigm := func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
	at, attention, disambiguation := 0, 0.0, 0.0
	for bag, size := range sizes {
		z, sum := make([]float64, d), 0.0
		for j := at; j < at+size; j++ {
			h, s := v("instances")[j*d:(j+1)*d], 0.0
			for c := range k {
				gv, gu := v("bv")[c], v("bu")[c]
				for i := range d {
					gv += h[i] * v("Wv")[i*k+c]
					gu += h[i] * v("Wu")[i*k+c]
				}
				s += math.Tanh(gv) * sigm(gu) * v("W")[c]
			}
			a := sigm(s)
			if diff := math.Abs(a - out["attention"].Data[j]); diff > 1e-12 {
				t.Fatalf("attention score of instance %d differs by %g", j, diff)
			}
			attention -= a * math.Log(a)
			sum += a
			for i := range d {
				z[i] += a * h[i]
			}
		}
		at += size
		f, total := make([]float64, k), 0.0
		for c := range k {
			f[c] = v("bc")[c]
			for i := range d {
				f[c] += z[i] / sum * v("Wc")[i*k+c]
			}
			total += math.Exp(f[c])
		}
		candidates := 0.0
		for c := range k {
			candidates += math.Exp(f[c]) / total * v("candidates")[bag*k+c]
		}
		for c := range k {
			prob := math.Exp(f[c]) / total
			w := 0.25*v("weights")[bag*k+c] + 0.75*prob*v("candidates")[bag*k+c]/candidates
			if diff := math.Abs(w - out["new_weights"].Data[bag*k+c]); diff > 1e-12 {
				t.Fatalf("label weight of bag %d, class %d differs by %g", bag, c, diff)
			}
			disambiguation -= w * math.Log(prob)
		}
	}
	want := map[string]float64{"loss.attention": attention / 2, "loss.disambiguation": disambiguation / 2,
		"loss": disambiguation/2 + 0.001*attention/2}
	for name, w := range want {
		if diff := math.Abs(w - out[name].Data[0]); diff > 1e-12 {
			t.Errorf("%s is %v, by hand %v", name, out[name].Data[0], w)
		}
	}
}

// Logarithms of values that round to zero are computed from the arguments of those values, so
// losses and gradients stay finite.
func TestLogarithmsOfVanishingValues(t *testing.T) {
	const text = "name: t\nmodel:\n  params: {u: [h, 1], C: [h, k]}\n" +
		"  let: {s: \"matmul(H, u)\", a: %s, z: \"bag_mean(a * H)\", p: %s}\nloss: [disambiguation, attention]\n"
	for _, c := range []struct{ a, p string }{
		{"sigmoid(s)", `"softmax(matmul(z, C))"`},
		{"exp(-softplus(-s))", `"exp(log_softmax(matmul(z, C)))"`},
		{"bag_softmax(s)", `"softmax(matmul(z, C))"`},
	} {
		p, err := parse(t, fmt.Sprintf(text, c.a, c.p))
		if err != nil {
			t.Fatal(err)
		}
		g, err := graph.Gradient(p.Train, compile.OutLoss, []string{"u", "C"})
		if err != nil {
			t.Fatal(err)
		}
		env := randomEnv(p, g, []int{3, 1, 4})
		for i := range env.Values["u"].Data {
			env.Values["u"].Data[i] *= 1e4 // scores differ by thousands: exp(-x) is 0 for x above 745
		}
		out, err := graph.Eval(g, env)
		if err != nil {
			t.Fatal(err)
		}
		least := 1.0
		for _, a := range out[compile.OutAttention].Data {
			least = min(least, a)
		}
		if least != 0 {
			t.Errorf("%s: the least attention is %v, not 0", c.a, least)
		}
		for name, v := range out {
			for _, x := range v.Data {
				if x-x != 0 {
					t.Fatalf("%s: %s is %v", c.a, name, v.Data)
				}
			}
		}
	}
}

// A parameter that is too large is the only error of the equations that use it.
func TestHugeParameter(t *testing.T) {
	_, err := parse(t, "name: t\nmodel:\n  params:\n    A: {shape: [1000000, 1000000, 1000000], init: normal, scale: "+
		"1}\n    B: {shape: [d, k]}\n"+
		"  let:\n    a: sigmoid(sum(X, 1) + sum(A))\n    p: softmax(matmul(bag_sum(a * X), B))\n")
	if err == nil || !strings.Contains(err.Error(), "the maximum is") || strings.Contains(err.Error(), "built") {
		t.Error(err)
	}
}

func TestShapeErrorsAtTheirPlace(t *testing.T) {
	const head = "name: t\nmodel:\n"
	cases := []struct{ name, src, want string }{
		{"conv2d on features", head + "  blocks:\n    - conv2d: {channels: 2, kernel: 3}\n    - flatten\n    - " +
			"attention\n    - pool: attention\n    - classifier\n",
			"test.yaml:4:7: conv2d needs images"},
		{"product", head + "  params:\n    A: {shape: [k, 3]}\n  let:\n    s: matmul(X, A)\n    a: sigmoid(sum(s, 1))\n   " +
			" p: softmax(bag_sum(X))\n  attention: a\n  probabilities: p\n",
			"test.yaml:6:8: matmul: inner extents differ"},
		{"two errors", head + "  params:\n    A: {shape: [d, 3]}\n  let:\n    q: X + A\n    a: sigmoid(sum(X, 7))\n    p: " +
			"softmax(bag_sum(q))\n  attention: a\n  probabilities: p\n",
			"test.yaml:6:8: +: shapes [N, 7] and [7, 3] do not fit together: N against 7\ntest.yaml:7:23: the axis must be"},
		{"parameter of a block", head + "  blocks: [attention, {pool: attention}]\n  params:\n    W: {shape: [h, k]}\n  " +
			"let:\n    p: softmax(matmul(z, W))\n",
			"test.yaml:5:5: the blocks have a parameter W already"},
		{"outputs", head + "  params:\n    A: {shape: [d, 3]}\n  let:\n    a: sigmoid(sum(X, 1))\n    p: " +
			"softmax(bag_sum(matmul(X, A)))\n  attention: a\n  probabilities: p\n",
			"test.yaml:9:18: probabilities must have the shape [B, 5], not [B, 3]"},
		{"label weights of one bag", head + "  blocks: [attention, pool: attention, classifier]\nweights: {update: " +
			"'sum(w, 1)'}\n",
			"test.yaml:4:20: the label weights must have the shape [B, 5], not [B, 1]"},
		{"label weights of a number", head + "  blocks: [attention, pool: attention, classifier]\nweights: {update: 1 * " +
			"lambda}\n",
			"test.yaml:4:19: the label weights must have the shape [B, 5], not []"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := parse(t, c.src)
			if err == nil || !strings.HasPrefix(err.Error(), c.want) {
				t.Fatalf("got %v\nwant %v...", err, c.want)
			}
			var drawn strings.Builder
			diag.Render(&drawn, err)
			if !strings.Contains(drawn.String(), "^") {
				t.Errorf("the place is not drawn:\n%s", drawn.String())
			}
		})
	}
}

func TestSignatureOf(t *testing.T) {
	spec, err := language.Parse("s.yaml", []byte("extends: demipl-image\nname: s\ndata: {classes: 5}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if sig, err := compile.SignatureOf(spec, []int{784}, 5); err != nil || fmt.Sprint(sig.Instance) != "[1 28 28]" {
		t.Errorf("signature %v, error %v", sig, err)
	}
	if _, err := compile.SignatureOf(spec, []int{38}, 5); err == nil || !strings.Contains(err.Error(), "784") {
		t.Errorf("wrong number of features: %v", err)
	}
	spec.Data.Shape.V = []int{3, 28, 28}
	if _, err := compile.SignatureOf(spec, []int{28, 28, 3}, 5); err == nil ||
		!strings.Contains(err.Error(), "[28 28 3]: transpose the array") {
		t.Errorf("channels last: %v", err)
	}
	if _, err := compile.SignatureOf(spec, []int{784}, 4); err == nil ||
		!strings.Contains(err.Error(), "data.classes is 5") {
		t.Errorf("wrong number of classes: %v", err)
	}
}
