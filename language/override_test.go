// Tests that overrides behave like a file that extends the spec.

package language_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/miplc/miplc/internal/diag"
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

// An override that cannot be applied does not hide errors of others, and of the file.
func TestAllErrorsOfOverrides(t *testing.T) {
	_, err := language.Parse("s.yaml", []byte("name: s\nextends: demipl\ntrain: {ephs: 3}\n"), "loss.atention=1",
		"train.lr=-1", "train.batch", "train.momentum=[")
	list, _ := diag.ListOf(err)
	var texts []string
	for _, d := range list {
		texts = append(texts, d.Text)
	}
	for _, want := range []string{"the list has no atention", "unknown key \"ephs\"", "train.lr must be greater than 0",
		"no value", "YAML syntax"} {
		if !slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(text, want) }) {
			t.Errorf("errors %q, not %q", texts, want)
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
