// Results of shipped specs change only on purpose.

package engines_test

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/export"
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
	initial := &train.State{Params: train.InitParams(p, 1)}
	if p.Normalize {
		n := ndarray.Size(p.Signature.Instance)
		initial.Params[compile.ParamMean], initial.Params[compile.ParamStd] = make([]float32, n), slices.Repeat([]float32{1},
			n)
	}
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
	p.Spec.Train.Batch.V = 3
	losses := follow(t, p, reference(), modeltest.Start(p, 1), 3, 1, [][]int{{4, 1, 3}, {2, 5, 1}}).loss
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
