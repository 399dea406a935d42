// Whole trainings in every engine.

package engines_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/data/bagfile"
	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/internal/testkit/enginetest"
	"github.com/miplc/miplc/internal/testkit/modeltest"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/runs/prepare"
	"github.com/miplc/miplc/train"
)

// options returns a whole training of a spec on the dataset that the spec generates.
func options(t testing.TB, text string) *train.Trial {
	t.Helper()
	s, err := language.Parse("training.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	list, err := prepare.Trials([]*language.Spec{s}, bagfile.Folder{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return list[0]
}

// training is a whole training.
type training struct {
	name, text string
	learns     bool    // the interpreter classifies most training bags correctly
	tolerance  float64 // of the loss of each epoch; 0: in many epochs, the last digits grow to other numbers
}

// trainings lists whole trainings with shuffling, masks, normalisation, label weights, schedules and evaluation, and
// with the settings of the loop around the updates.
func trainings() []training {
	list := []training{
		// uses only the number of the instances of a bag, which tells nothing about its class here
		{"counts", "name: counts\ndata: {set: generated:prototypes, generated: {bags: 60, classes: 3, features: 4, " +
			"min_size: 2, max_size: 9, seed: 1}}\nmodel: {params: {C: [1, k], b: [k]}, let: {p: " +
			"\"softmax(matmul(bag_count(X), C) + b)\"}}\nloss: [disambiguation]\ntrain: {epochs: 3, batch: 4}\n", false, 0},
		{"features", "extends: quickstart\nname: features\ndata: {generated: {bags: 150}}\n" +
			"train: {epochs: 20, batch: 1}\n", true, 0},
		{"features in batches", "extends: quickstart\nname: batches\ndata: {generated: {bags: 150}}\n" +
			"model: {blocks: [{dense: 20}, {dropout: 0.2}, relu, attention, {pool: attention}, classifier]}\ntrain: {epochs: " +
			"40, batch: 16, lr: 0.3}\n", true, 0},
		// the layers of the shipped image models, small enough for the interpreter
		{"images", "name: images\ndata: {set: generated:prototypes, generated: {bags: 90, classes: 3, features: 64, " +
			"positives: 0.5, min_size: 2, max_size: 5, noise: 0.1, seed: 3}, shape: [1, 8, 8]}\n" +
			"model: {blocks: [conv2d: {channels: 4, kernel: 3}, relu, maxpool2d: 2, " +
			"flatten, dense: 16, dropout: 0.2, relu, attention, pool: attention, " +
			"classifier]}\ntrain: {lr: 0.1, epochs: 15, batch: 4}\n", true, 0},
	}
	if light && enginetest.OnPlugin() { // XLA compiles slowly
		return list[1:]
	}
	for _, settings := range []string{
		"{epochs: 4, batch: 4, optimizer: adam, lr: 0.01, clip: 1}",
		"{epochs: 3, batch: 4, sampling: balanced}",
		"{epochs: 3, batch: 4, accumulate: 4, optimizer: adam, lr: 0.01, class_weights: balanced}", // 11 steps an epoch
		"{epochs: 3, batch: 8, lr: 0.05}\nloss: [disambiguation]\nmodel: {blocks: [dense: 8, batch_norm, relu, pool: mean, " +
			"dense: 6, batch_norm, classifier]}",
		"{epochs: 3, accumulate: 5, class_weights: [1, 3, 2, 1, 0.5]}",
		"{epochs: 3, batch: 1, sampling: balanced}",
		// the loss stays
		"{epochs: 5, batch: 4, warmup: 1, schedule: plateau, decay_patience: 0, lr: 1e-6}\nweights: {schedule: averaging}",
	} {
		text := "extends: quickstart\nname: features\ndata: {generated: {bags: 60}}\ntrain: " + settings + "\n"
		list = append(list, training{settings, text, false, 1e-4})
	}
	return list
}

// Every trainer agrees with the interpreter, and an interrupted and resumed training ends with the same bits:
// parameters, state of the optimizer, label weights and losses. So two trainings give the same bits. In long ones
// engines may differ in the last digits, but their numbers of correct bags on the same split differ by at most two.
func TestWholeTrainings(t *testing.T) {
	t.Parallel()
	for _, c := range trainings() {
		o := options(t, c.text)
		want := reference().train(t, o)
		if c.learns && *want.Measures.Accuracy("train") < 0.6 {
			t.Errorf("%s: the interpreter learns too little to compare: %v", c.name, *want.Measures.Accuracy("train"))
		}
		for _, m := range compared(t) {
			name, got := c.name+": "+m.name, m.train(t, o)
			for part, bags := range map[string]int{"train": len(o.Split.Train), "test": len(o.Split.Test)} {
				d := math.Abs(*got.Measures.Accuracy(part)-*want.Measures.Accuracy(part)) * float64(bags)
				if !(d < 2.5) {
					t.Errorf("%s classifies %.0f %s bags more or fewer correctly", name, d, part)
				}
			}
			for i, w := range want.Metrics {
				g := got.Metrics[i]
				if g.LR != w.LR || c.tolerance > 0 && !(math.Abs(g.Loss-w.Loss) <= enginetest.Tolerance(c.tolerance)) {
					t.Errorf("%s has loss %v at rate %v in epoch %d, want %v at %v", name, g.Loss, g.LR, i+1, w.Loss, w.LR)
				}
			}
			resumed := bits(m.interrupted(t, o, 2))
			for what, v := range bits(got) {
				if resumed[what] != v {
					t.Errorf("%s: %s differs when resumed", name, what)
				}
			}
		}
	}
}

// bits returns the results of a training, byte by byte.
func bits(r *train.Report) map[string]string {
	all := map[string]string{"label weights": string(ndarray.AppendBytes(nil, r.Weights))}
	for _, values := range []map[string][]float32{r.State.Params, r.State.Optimizer} {
		for name, v := range values {
			all[name] = string(ndarray.AppendBytes(nil, v))
		}
	}
	for _, m := range r.Metrics {
		all[fmt.Sprint("loss of epoch ", m.Epoch)] = fmt.Sprint(math.Float64bits(m.Loss))
	}
	return all
}

// interrupted trains a trial, interrupts it after an epoch and resumes it.
func (m maker) interrupted(t *testing.T, o *train.Trial, epoch int) *train.Report {
	t.Helper()
	own := *o
	own.Dir, own.CheckpointInterval = t.TempDir(), time.Hour // the epoch in which the context ends is kept
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, err := train.TrainOne(ctx, m.trainer, &own, train.Options{Observer: epochObserver{do: func(done train.Metrics) {
		if done.Epoch == epoch {
			cancel()
		}
	}}})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("%s: an interrupted training gives %v", m.name, err)
	}
	r, err := train.TrainOne(t.Context(), m.trainer, &own, train.Options{Resume: true})
	if err != nil || r.Resumed < epoch {
		t.Fatalf("%s: %v when resumed", m.name, err)
	}
	return r
}

// epochObserver calls a function after each epoch.
type epochObserver struct {
	train.Silent
	do func(train.Metrics)
}

func (o epochObserver) Epoch(m train.Metrics, _ train.Progress) { o.do(m) }

// In 300 epochs with large features and large weights of the attention loss and, in the second case, of a term that
// separates the scores, scores exceed -18 and +18, where float32's sigmoid is 0 and 1. No loss and no parameter of the
// last state is NaN or infinite.
func TestSaturatingTraining(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		scale    float32 // of the features
		lr, text string
	}{
		{20, "0.1", "extends: demipl\nloss: [disambiguation, attention: 0.5]\n"},
		{2, "0.01", `extends: demipl
model: {blocks: [attention: {gates: shared, scorer: mlp, hidden: 16}, pool: attention, classifier: bounded_sigmoid]}
loss: [disambiguation, attention: 0.5,
  equation: {name: spread, value: "mean(relu(40 - bag_max(s)) + relu(40 + bag_min(s)))", weight: 0.1}]
weights: {order: after_loss, first_epoch: 0}
`},
		{300, "0.01", `model:
  params: {u: [h, 1], C: [h, k]}
  let: {s: "matmul(H, u)", a: bag_softmax(s), z: "bag_sum(a * tanh(H))",
    logp: "log_softmax(matmul(z, C))", p: exp(logp)}
loss: [disambiguation, attention: 0.01]
`},
	} {
		o := options(t, "name: saturating\ndata: {set: \"generated:prototypes\", generated: {bags: 30, classes: 3, "+
			"features: 8, noise: 0.3}, normalize: none}\n"+
			"train: {epochs: 300, lr: "+c.lr+", schedule: constant, eval_every: 100}\n"+c.text)
		for i := range o.Data.Instances {
			o.Data.Instances[i] *= c.scale
		}
		for _, m := range compared(t) {
			if m.name == "xla" {
				continue // the pure Go executor is only for tests of single steps
			}
			r := m.train(t, o)
			finite := !slices.ContainsFunc(r.Metrics, func(e train.Metrics) bool { return e.Loss-e.Loss != 0 })
			for _, v := range r.State.Params {
				finite = finite && !slices.ContainsFunc(v, func(x float32) bool { return x-x != 0 })
			}
			lo, hi := scores(t, o, r.State.Params)
			if t.Logf("%s: loss %.3g, scores from %.4g to %.4g", m.name, r.Loss, lo, hi); !finite || lo > -18 || hi < 18 {
				t.Errorf("%s, %s: finite: %v, scores from %g to %g, which must exceed -18 and 18", c.text, m.name, finite, lo, hi)
			}
		}
	}
}

// scores returns the minimum and maximum of the attention score s, before the sigmoid or softmax, over all instances of
// a dataset, in float64.
func scores(t testing.TB, o *train.Trial, params map[string][]float32) (lo, hi float64) {
	t.Helper()
	g, b := o.Program.Infer, &train.Batch{Instances: o.Data.Instances, Bags: o.Data.Bags()}
	n := g.Output(compile.OutAttention)
	for slices.Contains([]graph.Op{graph.OpExp, graph.OpNeg, graph.OpSoftplus, graph.OpSegmentSoftmax}, n.Op) {
		n = n.In[0] // a sigmoid is exp(-softplus(-s))
	}
	for i := range b.Bags {
		b.BagOf = append(b.BagOf, slices.Repeat([]int{i}, o.Data.Size(i))...)
	}
	values, err := graph.EvalAll(g, modeltest.Environment(o.Program, g, b, params))
	if err != nil {
		t.Fatal(err)
	}
	s := values[n.ID].Data
	return slices.Min(s), slices.Max(s)
}
