// Any text is an experiment or ends in errors with positions, never in a panic.

package definition

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/specs"
)

// An override of an entry that is not of the language is an error, not a panic.
func TestOverrideOfWrongEntry(t *testing.T) {
	file := filepath.Join(t.TempDir(), "wrong.yaml")
	if err := os.WriteFile(file, []byte("name: s\ndata: [{P: {name: P}}]\nlearners: [{name: a, spec: demipl}]\n"),
		0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(file, "data.P=3"); err == nil || !strings.Contains(err.Error(), `unknown key "P" in data`) {
		t.Errorf("%v", err)
	}
}

func FuzzParse(f *testing.F) {
	for _, name := range specs.Experiments() {
		src, _ := specs.Experiment(name)
		f.Add(src)
	}
	files, _ := filepath.Glob("../testdata/bad/*.yaml")
	for _, file := range files {
		if src, err := os.ReadFile(file); err == nil {
			f.Add(src)
		}
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		e, err := Parse("fuzz.yaml", src)
		if (e == nil) == (err == nil) {
			t.Fatalf("experiment %v, error %v", e, err)
		}
		if e == nil {
			return
		}
		for i := range e.Learners {
			for _, d := range e.Data {
				for _, r := range d.R {
					if n := e.Learners[i].countSettings(d.Name.V, r); n < 1 || n > language.MaxGrid {
						t.Fatalf("%d settings", n)
					}
				}
			}
		}
	})
}
