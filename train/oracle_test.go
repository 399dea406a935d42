// The interpreter as an engine, and gorgonia beside it.

package train_test

import (
	"context"
	"math"
	"testing"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/testkit/modeltest"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/train"
	"github.com/miplc/miplc/train/engines"
)

// Without Nesterov's momentum: v = mu*v + g, p -= lr*v.
func TestPlainMomentum(t *testing.T) {
	b := graph.NewBuilder("slope")
	n := b.Input(compile.InInstances, graph.Float, graph.Shape{graph.N, 1})
	w := b.Param("w", graph.Shape{1})
	loss := b.Sum(b.Mul(w, w), false, 0)
	b.Output(compile.OutLoss, loss)
	b.Output(compile.OutProbabilities, n)
	b.Output(compile.OutAttention, n)
	b.Output(compile.OutLabelWeights, n)
	g, err := b.Graph()
	if err != nil {
		t.Fatal(err)
	}
	spec := &language.Spec{}
	spec.Train.Optimizer.V = "sgd"
	spec.Train.Momentum.V, spec.Train.WeightDecay.V = 0.5, 0.25
	e, err := train.NewOracle(&compile.Program{Spec: spec, Train: g, Infer: g,
		Signature: compile.Signature{Instance: []int{1}, Classes: 1}, Params: []compile.Param{{Name: "w", Shape: []int{1}}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.SetState(&train.State{Params: map[string][]float32{"w": {2}}}); err != nil {
		t.Fatal(err)
	}
	batch := &train.Batch{Instances: []float32{1}, BagOf: []int{0}, Bags: 1, Candidates: []float32{1},
		LabelWeights: []float32{1}, LR: 0.5}
	// g = 2w + w/4: 4.5, v = 4.5, w = -0.25; then g = -0.5625, v = 1.6875, w = -1.09375
	for _, want := range []float64{-0.25, -1.09375} {
		if _, err := e.Step(batch); err != nil {
			t.Fatal(err)
		}
		if got := e.Params()[0]; got != want {
			t.Errorf("w is %v, want %v", got, want)
		}
	}
}

func exact(p *compile.Program) (train.Engine, error) { return train.NewOracle(p) }

func oracleRun(t *testing.T, o *train.Trial, engine func(*compile.Program) (train.Engine, error)) *train.Report {
	t.Helper()
	r, err := train.TrainOne(context.Background(), &train.StepTrainer{New: engine}, o, train.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// The oracle trains the quickstart without any other engine. A second run gives the same bits.
func TestQuickstartLearns(t *testing.T) {
	o := modeltest.Quickstart(t, 100, 12, 1)
	r, again := oracleRun(t, o, exact), oracleRun(t, o, exact)
	if first := r.Metrics[0].Loss; r.Loss > 0.7*first || *r.Measures.Accuracy("train") < 0.7 {
		t.Errorf("loss from %v to %v, training accuracy %v", first, r.Loss, *r.Measures.Accuracy("train"))
	}
	for name, v := range r.State.Params {
		for i := range v {
			if math.Float32bits(v[i]) != math.Float32bits(again.State.Params[name][i]) {
				t.Fatalf("%s differs between two runs of one seed", name)
			}
		}
	}
}

// A whole training on gorgonia follows the oracle: both use the same shuffles, masks, normalisation,
// label weights and schedules.
func TestGorgoniaFollowsOracle(t *testing.T) {
	for _, batch := range []int{1, 16} {
		o := modeltest.Quickstart(t, 100, 4, batch)
		want := oracleRun(t, o, exact)
		got := oracleRun(t, o, engines.NewGorgonia)
		for i, m := range want.Metrics {
			if diff := math.Abs(got.Metrics[i].Loss - m.Loss); diff > 1e-5*m.Loss {
				t.Errorf("batch %d, epoch %d: gorgonia loss %v, oracle %v", batch, i+1, got.Metrics[i].Loss, m.Loss)
			}
		}
		for name, v := range want.State.Params {
			for i, w := range v {
				if diff := math.Abs(float64(got.State.Params[name][i] - w)); diff > 1e-5*math.Max(1, math.Abs(float64(w))) {
					t.Fatalf("batch %d: %s[%d] is %v, the oracle has %v", batch, name, i, got.State.Params[name][i], w)
				}
			}
		}
	}
}
