// Values of the functions and layers of the language.

package compile_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/graph"
)

const late = `name: late
model:
  sizes: {m: 3}
  numbers: {beta: 0.25}
  params: {C: [d, m], D: [m, k]}
  let:
    z: matmul(bag_mean(X), C) * (t + 10 * T) / (d * m)
    p: softmax(matmul(z, D) + beta * k)
loss: [disambiguation]
weights: {first_epoch: %d}
train: {epochs: 7}
`

// A prediction uses the epoch counters of the last epoch.
func TestPredictionsTakeTheLastEpoch(t *testing.T) {
	for first, last := range []float64{6, 7} {
		p, err := parse(t, fmt.Sprintf(late, first))
		if err != nil {
			t.Fatal(err)
		}
		for _, in := range p.Infer.ByOp(graph.OpInput) {
			if in.Name != compile.InInstances && in.Name != compile.InBagOf {
				t.Errorf("the inference graph has the input %s", in.Name)
			}
		}
		env := randomEnv(p, p.Train, []int{3, 1})
		env.Values[compile.ParamMean] = graph.NewTensor([]int{1, 7})
		env.Values[compile.ParamStd] = graph.NewTensor([]int{1, 7}, 1, 1, 1, 1, 1, 1, 1)
		predicted := eval(t, p.Infer, env)
		for _, epoch := range []float64{last, last - 1} {
			env.Values[compile.InEpoch] = graph.NewTensor(nil, epoch)
			env.Values[compile.InEpochs] = graph.NewTensor(nil, 7)
			same := near(predicted[compile.OutProbabilities], eval(t, p.Train, env)[compile.OutProbabilities])
			if same != (epoch == last) {
				t.Errorf("first epoch %d: the prediction is that of epoch %g: %v", first, epoch, same)
			}
		}
	}
}

func eval(t *testing.T, g *graph.Graph, env graph.Env) map[string]*graph.Tensor {
	t.Helper()
	out, err := graph.Eval(g, env)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func near(a, b *graph.Tensor) bool {
	for i := range a.Data {
		if math.Abs(a.Data[i]-b.Data[i]) > 1e-12 {
			return false
		}
	}
	return len(a.Data) == len(b.Data)
}

// Functions over bags and masks return values computed by hand.
func TestNewFunctions(t *testing.T) {
	p, err := parse(t, `name: f
model:
  params: {C: [d, k]}
  let:
    n: bag_count(X)
    p: softmax(matmul(bag_mean(X), C) * n)
loss:
  - equation: {name: count, value: "sum(n * bag_count(matmul(X, C)))"}
  - equation: {name: share, value: "sum(masked_softmax(logp, S) * (1 + p))"}
  - equation: {name: none, value: "sum(masked_softmax(logp, 0 * S)) + 1"}
  - equation: {name: extents, value: "d + 10 * k + 0 * mean(p)"}
`)
	if err != nil {
		t.Fatal(err)
	}
	env := randomEnv(p, p.Train, []int{4, 2})
	out := eval(t, p.Train, env)
	share, probs, s := 0.0, out[compile.OutProbabilities].Data, env.Values[compile.InCandidates].Data
	for bag := range 2 {
		total := 0.0
		for c := range 5 {
			total += probs[bag*5+c] * s[bag*5+c]
		}
		for c := range 5 {
			share += probs[bag*5+c] * s[bag*5+c] / total * (1 + probs[bag*5+c])
		}
	}
	for name, want := range map[string]float64{"count": 16 + 4, "share": share, "none": 1, "extents": 57} {
		if got := out[compile.TermPrefix+name].Data[0]; math.Abs(got-want) > 1e-12 {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
}

// Layers between the pool and the classifier, also dropout, transform the embeddings.
func TestLayersAfterThePool(t *testing.T) {
	p, err := parse(t, `name: deep
model:
  blocks: [dense: 6, relu, dropout: 0.25, pool: maxmin, dense: 4, tanh, dropout: 0.5, classifier]
`)
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for _, q := range p.Params {
		fmt.Fprintf(&got, "%s %v ", q.Name, q.Shape)
	}
	for _, m := range p.Masks {
		fmt.Fprintf(&got, "%s %v ", m.Name, m.Shape)
	}
	want := "dense1.weight [7 6] dense1.bias [6] dense2.weight [12 4] dense2.bias [4] Wc [4 5] bc [5] dropout1.mask " +
		"[N, 6] dropout2.mask [B, 4] "
	if got.String() != want {
		t.Errorf("got  %s\nwant %s", &got, want)
	}
}

// With after_step the label weights are computed by the training graph from the updated
// parameters.
func TestWeightsAfterTheStep(t *testing.T) {
	after, before := load(t, "rc-maxmin"), load(t, "proden-maxmin")
	if after.Train.Output(compile.OutLabelWeights) != nil || after.WeightUpdate == nil || before.WeightUpdate != nil {
		t.Fatal("label weights in the wrong graph")
	}
	env := randomEnv(before, before.Train, []int{3, 1, 5})
	if want, got := eval(t, before.Train, env)[compile.OutLabelWeights], eval(t, after.WeightUpdate,
		env)[compile.OutLabelWeights]; !near(want, got) {
		t.Errorf("label weights %v, want %v", got.Data, want.Data)
	}
	for _, build := range []func(*compile.Program) (*graph.Graph, error){compile.Step, compile.StepOneBag} {
		g, err := build(after)
		if err != nil {
			t.Fatal(err)
		}
		if g.Output(compile.OutLabelWeights) == nil {
			t.Error("the step has no label weights")
		}
	}
}
