// What earlier versions of miplc promised about specs (docs/compatibility.md).

package language

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/miplc/miplc/internal/testkit/testsupport"
	"github.com/miplc/miplc/specs"
)

// The keys of specs remain, with their words and defaults.
func TestPromisedKeys(t *testing.T) { testsupport.CheckPromisedKeys(t, "spec", Dialect.Schema()) }

// Shipped specs of earlier versions, complete with all their keys, are valid and mean the same.
func TestPromisedSpecs(t *testing.T) {
	file := filepath.Join(testsupport.PromisesFolder(t), "0.1", "specs.txtar")
	archive, err := txtar.ParseFile(file)
	if os.IsNotExist(err) && testsupport.Update() {
		archive = &txtar.Archive{}
		for _, name := range specs.Models() {
			spec, err := Load(name)
			if err != nil {
				t.Fatal(err)
			}
			archive.Files = append(archive.Files, txtar.File{Name: name, Data: spec.YAML()})
		}
		err = os.WriteFile(file, txtar.Format(archive), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, f := range archive.Files {
		spec, err := Parse(f.Name+".yaml", f.Data)
		if err != nil {
			t.Errorf("a spec of 0.1 is refused: %v", err)
			continue
		}
		if !slices.Contains(specs.Models(), f.Name) {
			t.Errorf("the spec %s is not shipped any more", f.Name)
		}
		lines = append(lines, f.Name+" "+spec.Identity())
	}
	testsupport.CheckPromises(t, "identities", lines)
}
