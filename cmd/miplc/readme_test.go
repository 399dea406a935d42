package main

import (
	"os"
	"regexp"
	"testing"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/runs"
	"github.com/miplc/miplc/specs"
)

var yamlBlock = regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$")

// Every spec in the README compiles.
func TestReadmeSpecs(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := yamlBlock.FindAllStringSubmatch(string(text), -1)
	if len(blocks) < 2 {
		t.Fatalf("found %d specs", len(blocks))
	}
	for _, b := range blocks {
		spec, err := language.Parse("README.md", []byte(b[1]), language.Options{})
		if err != nil {
			t.Errorf("%v\nin\n%s", err, b[1])
			continue
		}
		sig, _, err := runs.Signature(spec, data.Folder{})
		if err == nil {
			_, err = compile.Compile(spec, sig)
		}
		if err != nil {
			t.Errorf("%v\nin\n%s", err, b[1])
		}
	}
}

// Every shipped spec is in the README's table.
func TestReadmeNamesWhatIsShipped(t *testing.T) {
	raw, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	text := string(raw)
	for _, name := range specs.Models() {
		if !regexp.MustCompile(`(?m)^\|.*\b` + name + `\b.*\|`).MatchString(text) {
			t.Errorf("the shipped spec %s is not in the README", name)
		}
	}
}
