// Every example of the spec pages trains.

package engines_test

import (
	"math"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/data/generate"
	"github.com/miplc/miplc/internal/testkit/modeltest"
	"github.com/miplc/miplc/language"
)

// Every YAML example of the guide and of the reference of specs trains two epochs, except fitted learners.
// Examples without a model get a small one. The data is generated, with the labels and the shape that the
// example needs.
func TestDocumentedSpecsTrain(t *testing.T) {
	t.Parallel()
	var src []byte
	for _, page := range []string{"spec.md", "spec-reference.md"} {
		text, err := os.ReadFile("../../docs/" + page)
		if err != nil {
			t.Fatal(err)
		}
		src = append(src, text...)
	}
	trained := 0
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
		o := generate.PrototypeOptions{Bags: 24, Classes: 3, Features: 4, Candidates: 1, Positives: 0.5, MinSize: 1,
			MaxSize: 3, Noise: 0.5, Seed: 1, Multi: spec.Multi()}
		if strings.Contains(text, "conv2d") {
			spec.Data.Shape.V = []int{1, 28, 28}
		}
		if len(spec.Data.Shape.V) > 0 {
			o.Features = 28 * 28
		}
		spec.Train.Epochs.V = 2
		d, err := generate.Prototypes(o)
		if err != nil {
			t.Fatal(err)
		}
		trial := modeltest.Trial(t, spec, d)
		s := spec.Data.Split
		if trial.Split, err = data.RandomSplit(d.Bags(), d.TrueLists(), data.SplitSettings{Train: s.Train.V,
			Validation: s.Validation.V, Stratify: s.Stratify.V, Seed: uint64(s.Seed.V)}); err != nil {
			t.Fatal(err)
		}
		if r := byNative().train(t, trial); math.IsNaN(r.Loss) {
			t.Errorf("the loss is not a number:\n%s", text)
		}
		trained++
	}
	if trained < 30 {
		t.Errorf("only %d examples trained", trained)
	}
}
