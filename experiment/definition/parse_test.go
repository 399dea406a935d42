// Any text is an experiment or ends in errors with positions, never in a panic.

package definition

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/language/specs"
)

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
					if n := language.CountCombinations(AxisValues(e.Learners[i].GridOn(d.Name.V, r)), maxGrid); n < 1 || n > maxGrid {
						t.Fatalf("%d settings", n)
					}
				}
			}
		}
	})
}
