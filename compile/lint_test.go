// Models that are valid and useless are found while compiling, and good models cause no alarm.

package compile_test

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/testkit/modeltest"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/train"
)

func TestUselessModels(t *testing.T) {
	const head = "name: t\nmodel:\n  params:\n    A: {shape: [d, k]}\n    v: {shape: [d, 1]}\n  let:\n    s: matmul(X, " +
		"v)\n"
	const good = "    a: bag_softmax(s)\n    p: softmax(matmul(bag_sum(a * X), A))\n"
	for _, c := range []struct{ name, src, err, warning string }{
		{"nothing", head + good, "", ""},
		{"softmax of one column", head + "    a: softmax(s)\n    p: softmax(matmul(bag_sum(a * X), A))\n",
			"test.yaml:8:8: softmax along a last axis of size 1 is the same for every value (did you mean \"bag_softmax\"?)",
			""},
		{"logarithm of it", head + "    b: log_softmax(s)\n    a: exp(b)\n    p: softmax(matmul(bag_sum(a * X), A))\n",
			"test.yaml:8:8: log_softmax along a last axis of size 1", ""},
		{"predictions without instances", head + "    a: bag_softmax(s)\n    p: softmax(bag_sum(0 * matmul(X, A)))\n",
			"test.yaml:9:8: the probabilities do not depend on the instances", ""},
		{"counts only", strings.Replace(head, "[d, k]", "[2, k]", 1) + "    a: bag_softmax(s)\n    p: " +
			"softmax(matmul(concat(bag_count(X), bag_count(X)), A))\n", "", ""},
		{"a constant of each bag", strings.Replace(head, "[d, k]", "[1, k]", 1) + "    a: bag_softmax(s)\n    p: " +
			"softmax(matmul(bag_max(0 * s + 2), A))\n", "test.yaml:9:8: the probabilities do not depend on the instances", ""},
		{"masked softmax of one column", head + "    a: masked_softmax(s, 1)\n    p: softmax(matmul(bag_sum(a * X), A))\n",
			"test.yaml:8:8: masked_softmax along a last axis of size 1 is the same for every value", ""},
		{"a constant loss", head + good + "loss:\n  - equation: {name: sum, value: \"mean(sum(p, 1))\"}\n",
			"test.yaml:11:34: no parameter can change the loss: there is nothing to train", ""},
		{"a class without a chance", head + "    a: bag_softmax(s)\n    q: sigmoid(matmul(bag_sum(a * X), A)) + c\n    p: " +
			"softmax(q)\n" +
			"  numbers: {c: [0, 0, -3, 0, 0]}\n", "test.yaml:10:8: class 3 of 5 can never be predicted", ""},
		{"bounded probabilities", head + "    a: bag_softmax(s)\n    p: softmax(sigmoid(matmul(bag_sum(a * X), A)))\n", "",
			"test.yaml:9:8: no probability can exceed 0.405"},
		{"the same attention", head + "    a: bag_softmax(of_bag(bag_sum(s)))\n    p: softmax(matmul(bag_sum(a * X), A))\n",
			"",
			"test.yaml:8:8: the attention is the same for all instances of a bag"},
		{"a parameter without gradient", head + "    a: bag_softmax(stop_gradient(s))\n    p: softmax(matmul(bag_sum(a * " +
			"X), A))\n", "",
			"test.yaml:5:5: the parameter v keeps its initial value"},
		{"a term without effect", head + good + "loss:\n  - disambiguation\n  - equation: {name: entropy, value: mean(w * " +
			"log(w + 1))}\n" +
			"weights: {order: after_loss}\n", "", "test.yaml:12:5: the loss term entropy has no effect"},
		{"a sum of shares", head + good + "loss:\n  - disambiguation\n  - equation: {name: sparse, value: " +
			"mean(bag_sum(a))}\n", "", "test.yaml:12:5: the loss term sparse has no effect"},
		{"a sum of probabilities", head + good + "loss:\n  - disambiguation\n  - equation: {name: sum, value: " +
			"\"mean(sum(p, 1))\"}\n", "", "test.yaml:12:5: the loss term sum has no effect"},
		{"a class that no set has", head + "    a: bag_softmax(s)\n    p: 0.4 * sigmoid(matmul(bag_sum(a * X), A))\n" +
			"data: {labels: multi}\nloss: [binary_cross_entropy]\n", "test.yaml:9:8: class 1 of 5 can never be predicted", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := parse(t, c.src)
			if c.err != "" {
				if err == nil || !strings.HasPrefix(err.Error(), c.err) {
					t.Fatalf("error %v\nwant  %s", err, c.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(p.WarningTexts(), "\n"); !strings.Contains(got, c.warning) || c.warning == "" && got != "" {
				t.Errorf("warnings %q\nwant     %q", got, c.warning)
			}
		})
	}
}

// Layers that are wider than the limit up to which each column has a range of its own. Their concatenation once ended
// with a panic, or with the false error that class 1 can never be predicted.
func TestWideModelsAreNotUseless(t *testing.T) {
	for _, c := range []struct {
		name    string
		classes int
		model   string
	}{
		{"columns of different widths", 5, "  params:\n    A: {shape: [d, 600]}\n    B: {shape: [d, 500]}\n" +
			"    C: {shape: [1100, k]}\n  let:\n    z: concat(softmax(matmul(X, A)), softmax(matmul(X, B)))\n" +
			"    p: softmax(matmul(bag_mean(z), C))\n"},
		{"a sum of 1,200 columns", 2, "  params:\n    A: {shape: [d, 600]}\n  let:\n    g: sigmoid(matmul(X, A))\n" +
			"    p: softmax(concat(bag_max(sum(concat(1 + g, 1 + g), 1)), 1201 + 0.5 * bag_max(max(g, 1))))\n"},
	} {
		spec, err := language.Parse("test.yaml", []byte("name: t\nmodel:\n"+c.model))
		if err != nil {
			t.Fatal(err)
		}
		p, err := compile.Compile(spec, compile.Signature{Instance: []int{7}, Classes: c.classes})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		} else if len(p.WarningTexts()) > 0 {
			t.Errorf("%s: warnings %q", c.name, p.WarningTexts())
		}
	}
}

// Of the shipped specs only those get a warning whose probabilities are a softmax of sigmoids, as in the programs of
// their authors.
func TestShippedSpecsAreNotUseless(t *testing.T) {
	softmaxOfSigmoids := regexp.MustCompile("^(elimipl|miplma|promipl|demipl-program)(-image)?$")
	for _, name := range language.TrainedNames() {
		p := load(t, name)
		known := softmaxOfSigmoids.MatchString(name)
		if p.Warned(compile.LowProbabilities) != known || len(p.Warnings) > 1 || !known && len(p.Warnings) > 0 {
			t.Errorf("%s: warnings %v", name, p.Warnings)
		}
	}
}

var (
	constant  = regexp.MustCompile(`: the parameter (\S+) keeps its initial value`)
	noEffect  = regexp.MustCompile(`: the loss term (\S+) has no effect`)
	bounded   = regexp.MustCompile(`: no probability can exceed (\S+): `)
	attention = regexp.MustCompile(`: the attention is the same for all instances of a bag`)
)

// Random specs are no errors. They may deserve warnings: they have values that nothing uses, and scores of whole bags.
// The interpreter confirms each warning, and each kind of warning occurs.
func TestWarningsOfRandomSpecs(t *testing.T) {
	found := map[*regexp.Regexp]int{}
	codes := map[*regexp.Regexp]compile.WarningCode{constant: compile.FixedParameter, noEffect: compile.UselessTerm,
		bounded: compile.LowProbabilities, attention: compile.EqualAttention}
	for seed := range uint64(300) {
		p := modeltest.RandomProgram(t, seed)
		for _, w := range p.Warnings {
			kind, fault := checkWarning(t, p, seed, w.Text)
			if fault != "" || w.Code != codes[kind] {
				t.Errorf("seed %d: %s (code %d), but %s", seed, w.Text, w.Code, fault)
			}
			found[kind]++
		}
	}
	for _, kind := range []*regexp.Regexp{constant, noEffect, bounded, attention} {
		if found[kind] == 0 {
			t.Errorf("no spec has the warning %q", kind)
		}
	}
}

// checkWarning returns the kind of a warning, and what the interpreter computes to the contrary, if anything.
func checkWarning(t *testing.T, p *compile.Program, seed uint64, w string) (kind *regexp.Regexp, fault string) {
	t.Helper()
	batch := modeltest.Batch(p, seed, 3, 1, 4)
	params := modeltest.Start(p, seed).Params
	switch {
	case constant.MatchString(w):
		kind = constant
		name := constant.FindStringSubmatch(w)[1]
		if gradient(t, p, batch, params, compile.OutLoss)[name] {
			fault = "the loss has a gradient with respect to it"
		}
	case noEffect.MatchString(w):
		kind = noEffect
		term := noEffect.FindStringSubmatch(w)[1]
		for name := range gradient(t, p, batch, params, compile.TermPrefix+term) {
			fault = "it has a gradient with respect to " + name
		}
	case bounded.MatchString(w):
		kind = bounded
		limit, err := strconv.ParseFloat(bounded.FindStringSubmatch(w)[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		probabilities := evaluate(t, p.Infer, modeltest.Environment(p, p.Infer, batch, params))[compile.OutProbabilities]
		if highest := slices.Max(probabilities.Data); highest > limit*1.005 { // the text has three digits
			fault = fmt.Sprintf("one is %g", highest)
		}
	case attention.MatchString(w):
		kind = attention
		scores := evaluate(t, p.Infer, modeltest.Environment(p, p.Infer, batch, params))[compile.OutAttention].Data
		for i, bag := range batch.BagOf {
			if first := scores[slices.Index(batch.BagOf, bag)]; math.Abs(scores[i]-first) > 1e-12 {
				fault = fmt.Sprintf("bag %d has the scores %g and %g", bag, first, scores[i])
			}
		}
	default:
		t.Fatalf("seed %d: this test does not know the warning %q", seed, w)
	}
	return kind, fault
}

// gradient returns the parameters with respect to which an output of the training graph has a gradient that is not
// zero.
func gradient(t *testing.T, p *compile.Program, batch *train.Batch, params map[string][]float32,
	output string) map[string]bool {
	t.Helper()
	var names []string
	for _, n := range p.Train.ByOp(graph.OpParam) {
		names = append(names, n.Name)
	}
	g, err := graph.Gradient(p.Train, output, names)
	if err != nil {
		t.Fatal(err)
	}
	values := evaluate(t, g, modeltest.Environment(p, g, batch, params))
	found := map[string]bool{}
	for _, name := range names {
		if slices.ContainsFunc(values[graph.GradPrefix+name].Data, func(x float64) bool { return math.Abs(x) > 1e-9 }) {
			found[name] = true
		}
	}
	return found
}

func evaluate(t *testing.T, g *graph.Graph, env graph.Env) map[string]*graph.Tensor {
	t.Helper()
	out, err := graph.Eval(g, env)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
