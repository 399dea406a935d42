// No line of Go is longer than 120 columns.

package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// maxColumns is the maximum length of a line of Go in characters. A tab is one of them.
const maxColumns = 120

// generated matches the line that marks a generated file.
var generated = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)

// TestLines checks the files of all modules of the repository. Generated files and the expected output of examples are
// exempt.
func TestLines(t *testing.T) {
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := entry.Name(); entry.IsDir() && (name == ".git" || name == "node_modules") {
			return filepath.SkipDir
		}
		if filepath.Ext(path) != ".go" {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil || generated.Match(text) {
			return err
		}
		number, output := 0, false
		for line := range strings.Lines(string(text)) {
			number++
			comment := strings.TrimSpace(line)
			output = comment == "// Output:" || output && strings.HasPrefix(comment, "//")
			if n := utf8.RuneCountInString(strings.TrimRight(line, "\r\n")); n > maxColumns && !output {
				t.Errorf("%s:%d: a line of %d columns: wrap it, the maximum is %d", path, number, n, maxColumns)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
