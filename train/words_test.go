// Every word of the spec has a meaning here.

package train

import (
	"maps"
	"slices"
	"testing"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/language"
)

// This package implements exactly the setting words of the language.
func TestEveryWordHasAMeaning(t *testing.T) {
	words := language.Choices()
	same := func(path string, here []string) {
		if want := slices.Sorted(slices.Values(words[path])); !slices.Equal(here, want) {
			t.Errorf("%s: the language has %v, train has %v", path, want, here)
		}
	}
	same("weights.schedule", slices.Sorted(maps.Keys(lambdas)))
	same("train.schedule", slices.Sorted(maps.Keys(scheduleFactors)))
	d := &data.Dataset{Shape: []int{1}, Offsets: []int{0, 1, 2}, Instances: []float32{1, 5}}
	seen := map[float32]string{}
	for _, word := range words["data.normalize"] {
		spec := &language.Spec{}
		spec.Data.Normalize.V = word
		mean := float32(-1) // none
		if z, _ := Normalization(spec, d, []int{0}); z != nil {
			mean = z.Mean[0]
		}
		if other := seen[mean]; other != "" {
			t.Errorf("data.normalize: %s is the same as %s", word, other)
		}
		seen[mean] = word
	}
}

// Every kind of initial value can be drawn.
func TestEveryStartCanBeDrawn(t *testing.T) {
	for _, word := range language.Choices()["params.init"] {
		scale := ""
		if word == "normal" || word == "uniform" || word == "constant" {
			scale = ", scale: 1"
		}
		spec, err := language.Parse("t.yaml", []byte("name: t\nmodel: {params: {C: {shape: [h, k], init: "+word+scale+
			"}}, let: {p: \"softmax(matmul(bag_sum(X), C))\"}}\n"))
		if err != nil {
			t.Fatal(err)
		}
		p, err := compile.Compile(spec, compile.Signature{Instance: []int{3}, Classes: 2})
		if err != nil {
			t.Fatal(err)
		}
		if distributions[p.Params[0].Init.Kind] == nil {
			t.Errorf("%s: %s cannot be drawn", word, p.Params[0].Init.Kind)
		}
	}
}
