// Bags with any number of labels: what their probabilities must be.

package compile

import (
	"math"
	"strings"

	"github.com/miplc/miplc/compile/graph"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/ndarray"
)

// maxTried is the number of parameters up to which checkMulti evaluates a model.
const maxTried = 1e7

// checkMulti rejects equations for several labels per bag whose probabilities sum to 1. Many forms have
// this sum, such as the mean of a softmax over instances, so it evaluates the graph: with random
// parameters, the probabilities of classes that do not depend on each other have another sum.
func (l *lowerer) checkMulti() error {
	if !l.spec.Multi() || l.paramCount > maxTried {
		return nil
	}
	sums, err := sumsOfClasses(l.graph)
	if err != nil {
		return nil // not a statement about the sum: the engines report it
	}
	for _, sum := range sums {
		if !(math.Abs(sum-1) < 1e-9) {
			return nil
		}
	}
	m := &l.spec.Model
	for i := range m.Let {
		if m.Let[i].Name.V == m.Probabilities.V {
			return l.sumError(m.Let[i].Text.Pos)
		}
	}
	return l.sumError(m.Probabilities.Pos)
}

// sumsOfClasses returns the sum of the probabilities of some bags.
func sumsOfClasses(g *graph.Graph) ([]float64, error) {
	const bags, instances = 3, 6
	rng := ndarray.NewStream(1, "multi")
	env := graph.Env{N: instances, B: bags, Values: map[string]*graph.Tensor{InBagOf: graph.NewInts(0, 0, 1, 1, 2, 2)}}
	for _, n := range append(g.ByOp(graph.OpParam), g.ByOp(graph.OpInput)...) {
		if n.Type != graph.Float {
			continue // bag_of
		}
		shape, scale := ndarray.Convert[int](n.Shape), 1.0
		if n.Op == graph.OpInput {
			shape[0] = instances
		} else if len(shape) > 0 {
			scale = 1 / float64(shape[0])
		}
		t := graph.NewTensor(shape)
		for i := range t.Data {
			t.Data[i] = scale * (0.5 + rng.Float64()) // positive, as variances must be
		}
		env.Values[n.Name] = t
	}
	out, err := graph.Eval(g, env)
	if err != nil {
		return nil, err
	}
	p := out[OutProbabilities]
	sums := make([]float64, bags)
	for i, v := range p.Data {
		sums[i/p.Shape[1]] += v
	}
	return sums, nil
}

// sumError reports probabilities that sum to 1 at their equation or, if it is inherited, at data.labels.
func (l *lowerer) sumError(pos diag.Pos) error {
	d := diag.Errorf(pos, "the probabilities of the classes sum to 1, but data.labels is multi")
	if labels := l.spec.Data.Labels.Pos; l.spec.ExtendedBy(pos, labels) {
		at := l.spec.AddSource(d)
		d.Pos = labels
		d = d.WithNote("inherited from %s: %s", pos, strings.TrimSpace(at.Line))
	}
	return l.spec.AddSource(d).WithNote("give each class a probability by itself, such as p: sigmoid(logits) and logp: " +
		"log(sigmoid(logits))")
}
