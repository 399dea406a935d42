// How far scores of two engines may be apart.

package engines_test

import (
	"math"
	"testing"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/testkit/modeltest"
	"github.com/miplc/miplc/train"
)

// MIPLMA divides the scores of a bag by their standard deviation, which it treats as a constant in
// the gradient. In a bag of two instances the attention depends only on which score is larger, but
// the gradient is proportional to 1/deviation. If the two scores are close, the step is very large.
// This is why MIPLMA collapses on small bags, in PyTorch as well (docs/studies.md).
func TestDeviationOfTwoScores(t *testing.T) {
	through := "model.let.score=bag_softmax(centred / (of_bag(deviation) + 1e-8) / sqrt(h) / temperature)"
	detached, attached := modeltest.Shipped(t, "miplma"), modeltest.Shipped(t, "miplma", through)
	state, batch := modeltest.Start(detached, 1), modeltest.Batch(detached, 1, 2)
	batch.Epoch = 80 // the lowest temperature
	wide := scorer(t, detached, batch, state, 1)
	close := scorer(t, detached, batch, state, 0.01)
	for i, a := range wide.attention {
		if math.Abs(close.attention[i]-a) > 1e-5 {
			t.Errorf("scores 100 times closer: attention %v, want %v", close.attention, wide.attention)
		}
	}
	if ratio := close.gradient / wide.gradient; math.Abs(ratio-100) > 0.1 {
		t.Errorf("scores 100 times closer: the gradient of W2 is %v times as large, want 100", ratio)
	}
	if g := scorer(t, attached, batch, state, 1).gradient; g > 1e-5*wide.gradient {
		t.Errorf("the gradient of W2 through the deviation is %v, want 0; without it %v", g, wide.gradient)
	}
}

// scored is the attention and the gradient computed from the last layer of a scorer.
type scored struct {
	attention []float64
	gradient  float64 // largest element of the gradient of W2
}

// scorer computes a step with W2 multiplied by scale, which scales the differences of the scores.
func scorer(t *testing.T, p *compile.Program, b *train.Batch, s *train.State, scale float32) scored {
	t.Helper()
	params := map[string][]float32{}
	for name, values := range s.Params {
		params[name] = values
	}
	params["W2"] = nil
	for _, v := range s.Params["W2"] {
		params["W2"] = append(params["W2"], scale*v)
	}
	g, err := graph.Gradient(p.Train, compile.OutLoss, []string{"W2"})
	if err != nil {
		t.Fatal(err)
	}
	out := evaluate(t, g, modeltest.Environment(p, g, b, params))
	found := scored{attention: out[compile.OutAttention].Data}
	for _, v := range out[graph.GradPrefix+"W2"].Data {
		found.gradient = max(found.gradient, math.Abs(v))
	}
	return found
}
