// A prediction is a function of one bag.

package compile_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/testkit/modeltest"
	"github.com/miplc/miplc/language"
)

// equationModel is a model with one placeholder for equation e and one for p.
const equationModel = `name: t
model:
  params: {V: [d, k], C: [d, k], u: [d, 1]}
  let:
    s: matmul(X, u)
    z: bag_mean(X) * (sum(V) + sum(u))
    e: %s
    p: softmax(matmul(z, C) + 0.1 * (%s))
loss: [%s]
`

// An expression that mixes bags on the way to a prediction is rejected at its position.
func TestPredictionsOfMixedBagsAreRefused(t *testing.T) {
	cases := []struct{ e, p, want string }{
		{"z - mean(z, 0)", "matmul(e, C)", "test.yaml:7:12: "},
		{"exp(s) / sum(exp(s), 0)", "sum(bag_sum(e * X), 1) / mean(X)", ""}, // two faults
		{"exp(s) / sum(exp(s), 0)", "bag_sum(e)", "test.yaml:7:17: "},
		{"s - max(s, 0)", "bag_sum(e)", "test.yaml:7:12: "},
		{"sum(z)", "e", "test.yaml:7:8: "},
		{"z / mean(X)", "sum(e, 1)", "test.yaml:7:12: "},
		{"matmul(transpose(z), z)", "matmul(matmul(z, e), C)", "test.yaml:7:8: "},
		{"softmax(transpose(s))", "bag_sum(transpose(e))", "test.yaml:7:8: "},
		{"s - transpose(s)", "bag_sum(max(e, 1))", "test.yaml:7:8: "},
		{"matmul(s, transpose(s))", "bag_sum(max(e, 1))", "test.yaml:7:8: "},
		{"sum(transpose(z), 1)", "matmul(transpose(e), C)", "test.yaml:7:8: "},
		{"mean(bag_count(X))", "e * t", "test.yaml:7:8: "},
	}
	for _, c := range cases {
		_, err := parse(t, fmt.Sprintf(equationModel, c.e, c.p, "disambiguation"))
		if err == nil || !strings.Contains(err.Error(), "a prediction is a function of one bag") ||
			!strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("e: %s, p: %s\ngot %v\nwant an error at %s", c.e, c.p, err, c.want)
			continue
		}
		if n := strings.Count(err.Error(), "\n") + 1; (c.want == "") != (n == 2) {
			t.Errorf("e: %s, p: %s gives %d errors:\n%v", c.e, c.p, n, err)
		}
		var drawn strings.Builder
		if diag.Render(&drawn, err); !strings.Contains(drawn.String(), "^^") {
			t.Errorf("the place is not drawn:\n%s", drawn.String())
		}
	}
}

// The other outputs must not mix bags either.
func TestAllOutputsFollowFromOneBag(t *testing.T) {
	src := fmt.Sprintf(equationModel, "sigmoid(s) / sum(sigmoid(s), 0)", "bag_sum(s)", "disambiguation")
	for _, output := range []string{"attention: e", "log_probabilities: q"} {
		_, err := parse(t, strings.Replace(src, "loss:", "    q: log(p) - mean(p, 0)\n  "+output+"\nloss:", 1))
		what, _, _ := strings.Cut(output, ":")
		if err == nil || !strings.Contains(err.Error(), "on the way to the "+what) {
			t.Errorf("%s: %v", output, err)
		}
	}
}

// Expressions that keep bags separate, or mix them only in the loss, are allowed.
func TestWhatMayMixBags(t *testing.T) {
	for _, c := range []struct{ e, p, loss string }{
		{"X - of_bag(z)", "bag_max(sum(e, 1))", "disambiguation"},
		{"transpose(matmul(transpose(V), transpose(X)))", "bag_mean(e)", "disambiguation"},
		{"max(transpose(X), 0)", "bag_sum(transpose(e))", "disambiguation"},
		{"softmax(transpose(C))", "matmul(z, transpose(e))", "disambiguation"},
		{"sum(C) + mean(V, 0)", "e", "disambiguation"},
		{"z - mean(z, 0)", "sum(z, 1)", `{equation: {name: spread, value: "sum(e * e)"}}`},
		{"s / sum(s, 0)", "sum(z, 1)", `disambiguation, {equation: {name: spread, value: "sum(e * e)"}}`},
	} {
		if _, err := parse(t, fmt.Sprintf(equationModel, c.e, c.p, c.loss)); err != nil {
			t.Errorf("e: %s, p: %s: %v", c.e, c.p, err)
		}
	}
	src := fmt.Sprintf(equationModel, "s", "bag_sum(e)", "disambiguation")
	if _, err := parse(
		t, src+"weights: {schedule: linear, update: \"lambda * w + (1 - lambda) * S * p / mean(p, 0)\"}\n"); err != nil {
		t.Errorf("weights.update: %v", err)
	}
}

func TestLossesThatNothingCanChangeAreRefused(t *testing.T) {
	for loss, at := range map[string]string{
		`{equation: {name: c, value: "mean(S)"}}`:                     "test.yaml:9:36: ",
		`{equation: {name: c, value: "mean(stop_gradient(p) * w)"}}`:  "test.yaml:9:36: ",
		`{equation: {name: c, value: "0 * mean(p)"}}`:                 "test.yaml:9:36: ",
		`{equation: {name: c, value: "mean(p) * lambda", weight: 0}}`: "test.yaml:9:36: ",
		`disambiguation: 0`: "test.yaml:9:8: ",
		`disambiguation: 0, {equation: {name: c, value: "mean(w)"}}`: "test.yaml:9:8: ",
	} {
		_, err := parse(t, fmt.Sprintf(equationModel, "s", "bag_sum(s)", loss))
		if err == nil || !strings.HasPrefix(err.Error(), at+"no parameter can change the loss") {
			t.Errorf("%s: %v, want an error at %s", loss, err, at)
		}
	}
	for _, loss := range []string{
		`disambiguation: 0, {equation: {name: c, value: "mean(p)"}}`,
		`{equation: {name: c, value: "0.001 * sum(u)"}}`,
		`{equation: {name: c, value: "mean(w)"}}, disambiguation`,
	} {
		if _, err := parse(t, fmt.Sprintf(equationModel, "s", "bag_sum(s)", loss)); err != nil {
			t.Errorf("%s: %v", loss, err)
		}
	}
	if _, err := parse(t, "name: t\nmodel: {let: {p: \"softmax(bag_mean(X)) * 0.2 + 0 * bag_count(X) + 0 * softmax(k * "+
		"bag_sum(X))\"}}\n"); err == nil {
		t.Error("a model without parameters has nothing to train")
	}
}

// checkOneBag compares the outputs of each bag of a batch with those of the bag by itself.
func checkOneBag(t *testing.T, p *compile.Program, sizes []int) error {
	t.Helper()
	batch := randomEnv(p, p.Infer, sizes)
	together := eval(t, p.Infer, batch)
	at := 0
	for bag, size := range sizes {
		env := graph.Env{N: size, B: 1, Values: map[string]*graph.Tensor{}}
		maps.Copy(env.Values, batch.Values)
		env.Values[compile.InInstances] = rows(batch.Values[compile.InInstances], at, size)
		env.Values[compile.InBagOf] = graph.NewInts(make([]int, size)...)
		out := eval(t, p.Infer, env)
		if want := rows(together[compile.OutProbabilities], bag, 1); !near(out[compile.OutProbabilities], want) {
			return fmt.Errorf("bag %d: probabilities %v by itself, %v in the batch", bag, out[compile.OutProbabilities].Data,
				want.Data)
		}
		if want := rows(together[compile.OutAttention], at, size); !near(out[compile.OutAttention], want) {
			return fmt.Errorf("bag %d: attention %v by itself, %v in the batch", bag, out[compile.OutAttention].Data, want.Data)
		}
		at += size
	}
	return nil
}

func rows(x *graph.Tensor, at, n int) *graph.Tensor {
	width := len(x.Data) / x.Shape[0]
	return graph.NewTensor(append([]int{n}, x.Shape[1:]...), x.Data[at*width:(at+n)*width]...)
}

func TestPredictionOfABagAloneIsThatInABatch(t *testing.T) {
	for seed := range uint64(200) {
		spec, err := language.Parse("random.yaml", []byte(modeltest.RandomSpec(seed)))
		if err != nil {
			t.Fatal(err)
		}
		sig, err := compile.SignatureOf(spec, []int{spec.Data.Generated.Features.V}, spec.Data.Generated.Classes.V)
		if err != nil {
			t.Fatal(err)
		}
		p, err := compile.Compile(spec, sig)
		if err != nil {
			t.Fatal(err)
		}
		if err := checkOneBag(t, p, []int{3, 1, 4}); err != nil {
			t.Errorf("random spec %d: %v", seed, err)
		}
	}
}

// Every program that compiles predicts a bag in a batch as it does by itself, for random
// equations.
func TestEquationsThatCompileFollowFromOneBag(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	one := func(words ...string) string { return words[rng.IntN(len(words))] }
	var draw func(depth int) string
	draw = func(depth int) string {
		if depth == 0 {
			return one("X", "s", "z", "V", "u", "bag_count(X)")
		}
		x := draw(depth - 1)
		switch rng.IntN(8) {
		case 0:
			return fmt.Sprintf("(%s %s %s)", x, one("+", "-", "*"), draw(rng.IntN(depth)))
		case 1:
			return fmt.Sprintf("matmul(%s, %s)", x, draw(rng.IntN(depth)))
		case 2:
			return "transpose(" + x + ")"
		case 3:
			return fmt.Sprintf("%s(%s, %s)", one("sum", "mean", "max"), x, one("0", "1"))
		case 4:
			return fmt.Sprintf("%s(%s)", one("sum", "mean"), x)
		case 5:
			return fmt.Sprintf("%s(%s)", one("tanh", "softmax", "log_softmax", "stop_gradient"), x)
		default:
			return fmt.Sprintf("%s(%s)", one("bag_sum", "bag_max", "bag_softmax", "of_bag", "bag_min", "bag_mean"), x)
		}
	}
	kept, refused := 0, 0
	for range 4000 {
		e := draw(1 + rng.IntN(4))
		p, err := parse(t, fmt.Sprintf(equationModel, e, one("e", "bag_sum(e)", "transpose(e)", "sum(e, 1)", "matmul(z, e)"),
			"disambiguation"))
		switch {
		case err == nil:
			kept++
			if err := checkOneBag(t, p, []int{2, 1, 3}); err != nil {
				t.Errorf("%s: %v", e, err)
			}
		case strings.Contains(err.Error(), "a prediction is a function of one bag"):
			refused++
		}
	}
	if kept < 150 || refused < 100 {
		t.Errorf("%d programs compile, %d mix bags: too few for a meaningful test", kept, refused)
	}
	t.Logf("%d programs compile, %d mix bags", kept, refused)
}
