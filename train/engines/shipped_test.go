// Results of shipped specs change only on purpose, and the gradient of MIPLMA.

package engines_test

import (
	"crypto/sha256"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/export"
	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/contract"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/internal/onnxpb"
	"github.com/miplc/miplc/internal/testkit/modeltest"
	"github.com/miplc/miplc/internal/testkit/testsupport"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/train"
)

// The golden file shows every change of results: for each shipped spec, hashes of the initial
// parameters, of the exported model and of the training step, and the interpreter's loss in three
// steps. Trained parameters have no hashes, because their last bits depend on the processor.
// TestSteps compares the other engines with the interpreter.
func TestResultsOfShippedSpecs(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	fmt.Fprintln(&text, "spec  initial parameters  model.onnx  train-step.onnx  losses")
	for _, name := range language.TrainedNames() {
		fmt.Fprintf(&text, "%s  %s\n", name, results(t, modeltest.Shipped(t, name)))
	}
	testsupport.CheckGolden(t, "testdata/shipped.txt", text.String())
}

// results returns the line of a spec after its name.
func results(t *testing.T, p *compile.Program) string {
	t.Helper()
	initial := train.UntrainedState(p, 1)
	flat, err := p.Flatten(initial.Params)
	if err != nil {
		t.Fatal(err)
	}
	meta := contract.Metadata{Version: "test", Engine: "none"}
	for c := range p.Signature.Classes {
		meta.Classes = append(meta.Classes, fmt.Sprint(c))
	}
	model, err := export.Model(p, initial.Params, meta)
	if err != nil {
		t.Fatalf("%s: %v", p.Spec.Name.V, err)
	}
	g, err := compile.StepOfSpec(p)
	if err != nil {
		t.Fatalf("%s: %v", p.Spec.Name.V, err)
	}
	step, _, err := export.TrainStep(p, g, flat, contract.Step{Version: "test"})
	if err != nil {
		t.Fatalf("%s: %v", p.Spec.Name.V, err)
	}
	var losses []float32
	steps := drawn("shipped", p, 3, 1, fewBags[:2]).run(t, reference())
	for i := range 3 {
		losses = append(losses, steps[fmt.Sprintf("loss of step %d", i+1)]...)
	}
	return fmt.Sprintf("%s  %s  %s  %.4g", hash(ndarray.AppendBytes(nil, flat)), hashOf(t, model), hashOf(t, step), losses)
}

func hashOf(t *testing.T, m *onnxpb.ModelProto) string {
	t.Helper()
	b, err := onnxpb.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return hash(b)
}

// hash returns the first digits of a SHA-256, enough to notice a change.
func hash(b []byte) string { return fmt.Sprintf("%.6x", sha256.Sum256(b)) }

// MIPLMA divides the scores of a bag by their standard deviation, which it treats as a constant in
// the gradient. In a bag of two instances the attention depends only on which score is larger, but
// the gradient is proportional to 1/deviation. If the two scores are close, the step is very large.
// This is why MIPLMA collapses on small bags, in PyTorch as well (docs/studies.md).
func TestDeviationOfTwoScores(t *testing.T) {
	through := "model.let.score=bag_softmax(centred / (of_bag(deviation) + 1e-8) / sqrt(h) / temperature)"
	// scored returns the attention and the largest element of the gradient of W2, the last layer of the scorer, which is
	// multiplied by scale to scale the differences of the scores.
	scored := func(scale float32, set ...string) (attention []float64, gradient float64) {
		p := modeltest.Shipped(t, "miplma", set...)
		params, batch := modeltest.Start(p, 1).Params, modeltest.Batch(p, 1, 2)
		batch.Epoch = 80 // the lowest temperature
		for i := range params["W2"] {
			params["W2"][i] *= scale
		}
		g, err := graph.Gradient(p.Train, compile.OutLoss, []string{"W2"})
		if err != nil {
			t.Fatal(err)
		}
		out, err := graph.Eval(g, modeltest.Environment(p, g, batch, params))
		if err != nil {
			t.Fatal(err)
		}
		return out[compile.OutAttention].Data, largest(out[graph.GradPrefix+"W2"].Data)
	}
	attention, wide := scored(1)
	same, close := scored(0.01)
	for i, a := range attention {
		if math.Abs(same[i]-a) > 1e-5 {
			t.Errorf("scores 100 times closer: attention %v, want %v", same, attention)
		}
	}
	if ratio := close / wide; math.Abs(ratio-100) > 0.1 {
		t.Errorf("scores 100 times closer: the gradient of W2 is %v times as large, want 100", ratio)
	}
	if _, g := scored(1, through); g > 1e-5*wide {
		t.Errorf("the gradient of W2 through the deviation is %v, want 0; without it %v", g, wide)
	}
}
