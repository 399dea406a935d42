// Shape errors of specs with other mistakes: none follows from another.

package compile_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/language"
)

var word = regexp.MustCompile(`[A-Za-z_][A-Za-z0-9_]*`)

// A misspelt word is reported without a shape error that follows from it, for every word of the
// shipped specs.
func TestNoShapeErrorFollowsFromAMisspeltWord(t *testing.T) {
	file := filepath.Join(t.TempDir(), "spec.yaml")
	drafts := 0
	for _, name := range []string{"quickstart", "demipl-equations", "elimipl-image"} {
		whole, err := language.Load(name)
		if err != nil {
			t.Fatal(err)
		}
		sig := compile.Signature{Instance: []int{whole.Data.Generated.Features.V}, Classes: 5}
		if shape := whole.Data.Shape.V; len(shape) > 0 {
			sig.Instance = shape
		}
		text := whole.YAML()
		lines := bytes.SplitAfter(text, []byte("\n"))
		for i := range lines { // missing and moved lines must not cause a panic
			without := append(slices.Clone(lines[:i]), lines[i+1:]...)
			for _, wrong := range [][][]byte{without, append(slices.Clone(without), lines[i]), append([][]byte{lines[i]},
				without...)} {
				if draft := draftOf(t, file, bytes.Join(wrong, nil)); draft != nil {
					_ = compile.Check(draft, sig)
				}
			}
			if i > 0 {
				swapped := slices.Clone(lines)
				swapped[i-1], swapped[i] = lines[i], lines[i-1]
				if draft := draftOf(t, file, bytes.Join(swapped, nil)); draft != nil {
					_ = compile.Check(draft, sig)
				}
			}
		}
		for _, at := range word.FindAllIndex(text, -1) {
			wrong := append(append(append([]byte(nil), text[:at[1]]...), "qq"...), text[at[1]:]...)
			draft := draftOf(t, file, wrong)
			if draft == nil {
				continue
			}
			drafts++
			known := sig
			if draft.Data.Set.V == "" {
				known = compile.Signature{}
			}
			if err := compile.Check(draft, known); err != nil {
				t.Fatalf("%s with %sqq: %v", name, text[at[0]:at[1]], err)
			}
		}
	}
	if drafts < 200 {
		t.Errorf("only %d drafts", drafts)
	}
}

// Definitions of losses that refer to each other are reported when the spec is read. They end the check, and no other
// error follows from them.
func TestCheckOfCircularDefinitions(t *testing.T) {
	for _, let := range []string{"{v: exp(v)}", "{u: exp(v), v: exp(u)}", "{u: 2 * v, v: u + 1}"} {
		text := "name: t\nmodel: {blocks: [pool: mean, classifier: softmax]}\nlet: " + let +
			"\nloss: [disambiguation, equation: {name: e, value: mean(v)}]\n"
		draft := draftOf(t, filepath.Join(t.TempDir(), "spec.yaml"), []byte(text))
		if draft == nil {
			t.Fatalf("%s is not a draft with errors", let)
		}
		if err := compile.Check(draft, compile.Signature{Instance: []int{7}, Classes: 5}); err != nil {
			t.Errorf("%s: %v", let, err)
		}
	}
}

// draftOf returns the draft of a wrong spec, or nil if the spec is valid or cannot be read.
func draftOf(t *testing.T, file string, text []byte) *language.Spec {
	t.Helper()
	if err := os.WriteFile(file, text, 0o644); err != nil {
		t.Fatal(err)
	}
	draft, err := language.Draft(file)
	if err == nil {
		return nil
	}
	return draft
}

// An inherited batch normalisation of bags does not fit train.batch: 1, which the error names.
func TestPlaceOfOneBagPerStep(t *testing.T) {
	for _, base := range []string{"proden-mean-mlp", "fastmipl"} {
		spec, err := language.Parse("s.yaml", []byte("name: s\nextends: "+base+
			"\ndata: {normalize: none}\ntrain: {batch: 1}\n"))
		if err != nil {
			t.Fatal(err)
		}
		err = compile.Check(spec, compile.Signature{Instance: []int{4}, Classes: 3})
		if err == nil || !strings.HasPrefix(err.Error(), "s.yaml:4:9: batch_norm") {
			t.Errorf("%s: %v", base, err)
		}
	}
}
