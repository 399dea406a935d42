// Shipped specs train with certain and with several labels.

package engines_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/data/generate"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/testkit/modeltest"
	"github.com/miplc/miplc/internal/testkit/testsupport"
	"github.com/miplc/miplc/language"
)

// Every shipped spec trains an epoch with each kind of labels, or is rejected at the setting of the user.
// The golden file shows which; a rejected spec trains after the change that the error names.
func TestShippedSpecsWithLabels(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	for _, name := range language.TrainedNames() {
		for _, labels := range []string{"candidates", language.KnownLabels, language.MultiLabels} {
			if d := rejected(t, name, labels, ""); d == nil {
				fmt.Fprintf(&text, "%s, %s: trains\n", name, labels)
			} else {
				fmt.Fprintf(&text, "%s, %s: %v\n", name, labels, d)
				fixed := "loss: [binary_cross_entropy]\n"
				if strings.Contains(d.Text, "sum to 1") {
					fixed = "model: {let: {logp: log(bag_mean(sigmoid(f)))}}\n"
				}
				if d := rejected(t, name, labels, fixed); d != nil {
					t.Errorf("%s with %s: %v", name, fixed, d)
				}
			}
		}
	}
	testsupport.CheckGolden(t, "testdata/labels.txt", text.String())
}

// rejected trains a shipped spec with other labels for one epoch. It returns the first error of the spec.
func rejected(t *testing.T, name, labels, more string) *diag.Diagnostic {
	t.Helper()
	source := "extends: " + name + "\nname: labels\ntrain: {epochs: 1}\ndata:\n"
	o := generate.PrototypeOptions{Bags: 12, Classes: 3, Features: 7, Candidates: 1, Positives: 0.5, MinSize: 1,
		MaxSize: 3, Noise: 0.5, Seed: 1}
	if shipped, err := language.Load(name); err != nil {
		t.Fatal(err)
	} else if len(shipped.Data.Shape.V) > 0 {
		o.Features = 256
		source += "  shape: [1, 16, 16]\n"
	}
	if source += "  set: bags.csv\n"; labels != "candidates" {
		source += "  labels: " + labels + "\n"
	}
	d, err := generate.Prototypes(o)
	if err != nil {
		t.Fatal(err)
	}
	relabel(d, labels)
	spec, err := language.Parse("labels.yaml", []byte(source+more))
	if err == nil {
		var sig compile.Signature
		if sig, err = compile.SignatureOf(spec, d.Shape, d.Classes); err == nil {
			_, err = compile.Compile(spec, sig)
		}
	}
	if list, ok := diag.ListOf(err); ok {
		return &list[0]
	} else if err != nil {
		t.Fatalf("%s, %s: %v", name, labels, err)
	}
	if r := byNative().train(t, modeltest.Trial(t, spec, d)); math.IsNaN(r.Loss) {
		t.Errorf("%s, %s: the loss is not a number", name, labels)
	}
	return nil
}

// relabel makes the true labels of a dataset its only candidates, or its candidates true labels.
func relabel(d *data.Dataset, labels string) {
	switch labels {
	case language.KnownLabels:
		clear(d.Candidates)
		for i, label := range d.Labels {
			d.Candidates[i*d.Classes+label] = 1
		}
	case language.MultiLabels:
		d.Multi, d.Labels = true, nil
	}
}
