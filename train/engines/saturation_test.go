// Trainings whose scores saturate stay finite.

package engines_test

import (
	"math"
	"slices"
	"testing"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/testkit/modeltest"
	"github.com/miplc/miplc/train"
)

// scores returns the minimum and maximum of the attention score s, before the sigmoid, over all
// instances of a set, in float64.
func scores(t testing.TB, o *train.Trial, params map[string][]float32) (lo, hi float64) {
	t.Helper()
	g := o.Program.Infer
	n := g.Output(compile.OutAttention)
	path := []graph.Op{graph.OpExp, graph.OpNeg, graph.OpSoftplus, graph.OpNeg} // exp(-softplus(-s))
	if n.Op == graph.OpSegmentSoftmax {
		path = path[:0]
		n = n.In[0]
	}
	for _, op := range path {
		if n.Op != op {
			t.Fatalf("attention is computed from %v, not from the logarithm of a sigmoid", n.Op)
		}
		n = n.In[0]
	}
	d := o.Data
	var bagOf []int
	for i := range d.Bags() {
		bagOf = append(bagOf, slices.Repeat([]int{i}, d.Size(i))...)
	}
	b := &train.Batch{Instances: d.Instances, BagOf: bagOf, Bags: d.Bags()}
	values, err := graph.EvalAll(g, modeltest.Environment(o.Program, g, b, params))
	if err != nil {
		t.Fatal(err)
	}
	s := values[n.ID].Data
	return slices.Min(s), slices.Max(s)
}

// In 300 epochs with large features and large weights of the attention loss and, in the second
// case, of a term that separates the scores, scores exceed -18 and +18, where float32's sigmoid is
// 0 and 1. No step and no parameter of the last state is NaN. Run ends at the first loss that is
// not finite.
func TestSaturatingTraining(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		scale float32 // of the features
		text  string
	}{
		{"paper", 20, `
name: paper
extends: demipl
data: {set: "generated:prototypes", generated: {bags: 30, classes: 3, features: 8, noise: 0.3}, normalize: none}
loss: [disambiguation, attention: 0.5]
train: {epochs: 300, lr: 0.1, schedule: constant, eval_every: 100}
`},
		{"program", 2, `
name: program
extends: demipl
data: {set: "generated:prototypes", generated: {bags: 30, classes: 3, features: 8, noise: 0.3}, normalize: none}
model: {blocks: [attention: {gates: shared, scorer: mlp, hidden: 16}, pool: attention, classifier: bounded_sigmoid]}
loss: [disambiguation, attention: 0.5,
  equation: {name: spread, value: "mean(relu(40 - bag_max(s)) + relu(40 + bag_min(s)))", weight: 0.1}]
weights: {order: after_loss, first_epoch: 0}
train: {epochs: 300, lr: 0.01, schedule: constant, eval_every: 100}
`},
		{"softmax", 300, `
name: softmax
data: {set: "generated:prototypes", generated: {bags: 30, classes: 3, features: 8, noise: 0.3}, normalize: none}
model:
  params: {u: [h, 1], C: [h, k]}
  let: {s: "matmul(H, u)", a: bag_softmax(s), z: "bag_sum(a * tanh(H))",
    logp: "log_softmax(matmul(z, C))", p: exp(logp)}
loss: [disambiguation, attention: 0.01]
train: {epochs: 300, lr: 0.01, schedule: constant, eval_every: 100}
`},
	} {
		o := options(t, c.text)
		for i := range o.Data.Instances {
			o.Data.Instances[i] *= c.scale
		}
		for _, m := range compared(t) {
			if m.name == "xla" {
				continue // the pure Go executor is only for tests of single steps
			}
			r := m.train(t, o)
			for name, v := range r.State.Params {
				for i, x := range v {
					if x-x != 0 {
						t.Fatalf("%s, %s: %s[%d] is %v", c.name, m.name, name, i, x)
					}
				}
			}
			for i, metrics := range r.Metrics {
				if math.IsNaN(metrics.Loss) || math.IsInf(metrics.Loss, 0) {
					t.Fatalf("%s, %s: loss %v in epoch %d", c.name, m.name, metrics.Loss, i+1)
				}
			}
			lo, hi := scores(t, o, r.State.Params)
			t.Logf("%s, %s: loss %.3g, scores from %.4g to %.4g", c.name, m.name, r.Loss, lo, hi)
			if lo > -18 || hi < 18 {
				t.Errorf("%s, %s: scores from %g to %g do not saturate on both sides", c.name, m.name, lo, hi)
			}
		}
	}
}
