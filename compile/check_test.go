package compile_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/specs"
)

var word = regexp.MustCompile(`[A-Za-z_][A-Za-z0-9_]*`)

// A misspelt word is told of by itself: no error of shapes follows from it,
// whichever word of a shipped spec it is.
func TestNoShapeErrorFollowsFromAMisspeltWord(t *testing.T) {
	file := filepath.Join(t.TempDir(), "spec.yaml")
	drafts := 0
	for _, name := range []string{"quickstart", "demipl-equations", "elimipl-image", "lws-maxmin-mlp"} {
		whole, err := specs.Load(name, specs.Options{})
		if err != nil {
			t.Fatal(err)
		}
		sig := compile.Signature{Instance: []int{whole.Data.Generated.Features.V}, Classes: 5}
		if shape := whole.Data.Shape.V; len(shape) > 0 {
			sig.Instance = shape
		}
		text := whole.YAML()
		for _, at := range word.FindAllIndex(text, -1) {
			wrong := append(append(append([]byte(nil), text[:at[1]]...), "qq"...), text[at[1]:]...)
			if err := os.WriteFile(file, wrong, 0o644); err != nil {
				t.Fatal(err)
			}
			draft, err := specs.Draft(file, specs.Options{})
			if err == nil || draft == nil {
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
	if drafts < 300 {
		t.Errorf("only %d drafts", drafts)
	}
}
