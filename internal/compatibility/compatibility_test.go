// Package compatibility keeps what versions of miplc promise, in a folder for each minor version, and checks
// that this version keeps it (docs/compatibility.md). Packages with commands, results and exported names
// compare their own promises with testsupport.CheckPromises.
package compatibility

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/miplc/miplc/experiment/definition"
	"github.com/miplc/miplc/internal/testkit/testsupport"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/language/schema"
	"github.com/miplc/miplc/specs"
)

// The keys of specs and experiments remain, with their words and defaults.
func TestPromisedKeys(t *testing.T) {
	for name, dialect := range map[string]*schema.Dialect{"spec": language.Dialect, "experiment": definition.Language} {
		var schema any
		if err := json.Unmarshal(dialect.Schema(), &schema); err != nil {
			t.Fatal(err)
		}
		testsupport.CheckPromises(t, name, keys("", schema))
	}
}

// keys returns the keys of a JSON Schema, each with its words and its default.
func keys(path string, part any) (lines []string) {
	switch part := part.(type) {
	case []any:
		for _, p := range part {
			lines = append(lines, keys(path, p)...)
		}
	case map[string]any:
		for key, value := range part {
			switch key {
			case "properties", "$defs", "patternProperties":
				for name, inner := range value.(map[string]any) {
					lines = append(lines, keys(strings.TrimPrefix(path+"."+name, "."), inner)...)
				}
				continue
			case "default":
				lines = append(lines, fmt.Sprintf("%s: %v is the default", path, value))
			case "enum":
				for _, word := range value.([]any) {
					lines = append(lines, fmt.Sprintf("%s: %v", path, word))
				}
			default:
				lines = append(lines, keys(path, value)...)
			}
		}
		if path != "" {
			lines = append(lines, path)
		}
	}
	return lines
}

// Shipped specs of earlier versions, complete with all their keys, are valid and mean the same.
func TestPromisedSpecs(t *testing.T) {
	const file = "0.1/specs.txtar"
	archive, err := txtar.ParseFile(file)
	if os.IsNotExist(err) && testsupport.Update() {
		archive = &txtar.Archive{}
		for _, name := range specs.Models() {
			spec, err := language.Load(name)
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
		spec, err := language.Parse(f.Name+".yaml", f.Data)
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
