// Shipped specs train with all kinds of labels, and the examples of the documentation train.

package engines_test

import (
	"fmt"
	"math"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/data/generate"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/internal/testkit/modeltest"
	"github.com/miplc/miplc/internal/testkit/testsupport"
	"github.com/miplc/miplc/language"
)

// trainsOn trains a spec with engine native on drawn bags of three classes, with the shape and the labels of the spec.
// It returns the first error of the spec.
func trainsOn(t *testing.T, spec *language.Spec, bags, features int) *diag.Diagnostic {
	t.Helper()
	if shape := spec.Data.Shape.V; len(shape) > 0 {
		features = ndarray.Size(shape)
	}
	d, err := generate.Prototypes(generate.PrototypeOptions{Bags: bags, Classes: 3, Features: features, Candidates: 1,
		Positives: 0.5, MinSize: 1, MaxSize: 3, Noise: 0.5, Seed: 1, Multi: spec.Multi()})
	if err != nil {
		t.Fatal(err)
	}
	if spec.Data.Labels.V == language.KnownLabels {
		clear(d.Candidates)
		for i, label := range d.Labels {
			d.Candidates[i*d.Classes+label] = 1
		}
	}
	sig, err := compile.SignatureOf(spec, d.Shape, d.Classes)
	if err == nil {
		_, err = compile.Compile(spec, sig)
	}
	if err != nil {
		return first(t, err)
	}
	if r := byNative().train(t, modeltest.Trial(t, spec, d)); math.IsNaN(r.Loss) {
		t.Errorf("the loss of %s is not a number:\n%s", spec.Name.V, spec.YAML())
	}
	return nil
}

func first(t *testing.T, err error) *diag.Diagnostic {
	t.Helper()
	list, ok := diag.ListOf(err)
	if !ok {
		t.Fatal(err)
	}
	return &list[0]
}

// Every shipped spec trains an epoch with each kind of labels, or is rejected at the setting of the user.
// The golden file shows which; a rejected spec trains after the change that the error names.
func TestShippedSpecsWithLabels(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	for _, name := range language.TrainedNames() {
		for _, labels := range []string{"candidates", language.KnownLabels, language.MultiLabels} {
			d := trainsWithLabels(t, name, labels, "")
			if d == nil {
				fmt.Fprintf(&text, "%s, %s: trains\n", name, labels)
				continue
			}
			fmt.Fprintf(&text, "%s, %s: %v\n", name, labels, d)
			fixed := "loss: [binary_cross_entropy]\n"
			if strings.Contains(d.Text, "sum to 1") {
				fixed = "model: {let: {logp: log(bag_mean(sigmoid(f)))}}\n"
			}
			if d := trainsWithLabels(t, name, labels, fixed); d != nil {
				t.Errorf("%s with %s: %v", name, fixed, d)
			}
		}
	}
	testsupport.CheckGolden(t, "testdata/labels.txt", text.String())
}

// trainsWithLabels trains a shipped spec with other labels for one epoch. It returns the first error of the spec.
func trainsWithLabels(t *testing.T, name, labels, more string) *diag.Diagnostic {
	t.Helper()
	source := "extends: " + name + "\nname: labels\ntrain: {epochs: 1}\ndata:\n"
	if shipped, err := language.Load(name); err != nil {
		t.Fatal(err)
	} else if len(shipped.Data.Shape.V) > 0 {
		source += "  shape: [1, 16, 16]\n"
	}
	if source += "  set: bags.csv\n"; labels != "candidates" {
		source += "  labels: " + labels + "\n"
	}
	spec, err := language.Parse("labels.yaml", []byte(source+more))
	if err != nil {
		return first(t, err)
	}
	return trainsOn(t, spec, 12, 7)
}

// Every YAML example of the guide and of the reference of specs trains two epochs, except fitted learners.
// Examples without a model get a small one.
func TestDocumentedSpecsTrain(t *testing.T) {
	t.Parallel()
	trained := 0
	for _, page := range []string{"spec.md", "spec-reference.md"} {
		src, err := os.ReadFile("../../docs/" + page)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(src), -1) {
			text := e[1]
			if !regexp.MustCompile(`(?m)^name:`).MatchString(text) {
				text = "name: example\n" + text
			}
			if !regexp.MustCompile(`(?m)^(model|extends|learner):`).MatchString(text) {
				text += "model: {blocks: [flatten, pool: mean, classifier]}\n"
			}
			spec, err := language.Parse("example.yaml", []byte(text))
			if err != nil || spec.Fitted() {
				continue // TestReferenceExamples reports errors
			}
			if spec.Train.Epochs.V = 2; strings.Contains(text, "conv2d") {
				spec.Data.Shape.V = []int{1, 28, 28}
			}
			if d := trainsOn(t, spec, 24, 4); d != nil {
				t.Errorf("%v:\n%s", d, text)
			}
			trained++
		}
	}
	if trained < 30 {
		t.Errorf("only %d examples trained", trained)
	}
}
