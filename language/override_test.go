// Tests that overrides behave like a file that extends the spec.

package language_test

import (
	"strings"
	"testing"

	"github.com/miplc/miplc/language"
)

// An override of the losses drops what only the replaced losses used, like the same lines in a file.
func TestReplacedLossDropsItsParameters(t *testing.T) {
	for _, name := range language.TrainedNames() {
		over, err := language.Load(name, "data.labels=multi", "loss=[binary_cross_entropy]")
		file, fileErr := language.Parse("mine.yaml", []byte("extends: "+name+"\nname: "+name+
			"\ndata: {labels: multi}\nloss: [binary_cross_entropy]\n"))
		if (err == nil) != (fileErr == nil) {
			t.Errorf("%s: with --set %v, in a file %v", name, err, fileErr)
		} else if err == nil && over.Identity() != file.Identity() {
			t.Errorf("%s: another spec with --set than in a file", name)
		}
	}
	for _, name := range []string{"acmil", "clam-sb", "elimipl"} {
		if _, err := language.Load(name, "data.labels=multi", "loss=[binary_cross_entropy]"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A parameter that the file of the user does not use remains an error, also with an override.
func TestUnusedParameterWithOverride(t *testing.T) {
	src := "extends: demipl\nname: mine\nmodel: {params: {Extra: [h, k]}}\n"
	for _, set := range [][]string{nil, {"train.epochs=5"}, {"loss=[disambiguation]"}} {
		if _, err := language.Parse("mine.yaml", []byte(src), set...); err == nil ||
			!strings.Contains(err.Error(), "the parameter Extra is never used") {
			t.Errorf("%v: %v", set, err)
		}
	}
}

// A wrong scale from the command line is one error; the scale is not also missing.
func TestWrongScale(t *testing.T) {
	_, err := language.Load("demipl-equations", "model.params.W.init=constant", "model.params.W.scale=0")
	if err == nil || strings.Contains(err.Error(), "needs a scale") {
		t.Error(err)
	}
}
