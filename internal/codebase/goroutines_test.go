package codebase

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// started finds what starts a goroutine in which a panic would end the program.
var started = regexp.MustCompile(`(?m)^\s*go (func\b|[\w.]+\()|sync\.WaitGroup|errgroup\.`)

// TestGoroutines: no panic reaches a user, so goroutines are those of a
// workers.Group, or of a file that recovers in them itself. Examples are what users
// write, without our internal packages.
func TestGoroutines(t *testing.T) {
	recovers := map[string]bool{"internal/workers/workers.go": true, "cmd/miplc/internal/cli/main.go": true, "train/steps.go": true}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := entry.Name(); entry.IsDir() && (name == "testdata" || name == ".git" || name == "node_modules" || name == "examples") {
			return filepath.SkipDir
		}
		rel, err := filepath.Rel(root, path)
		if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") || recovers[filepath.ToSlash(rel)] {
			return err
		}
		text, err := os.ReadFile(path)
		if found := started.Find(text); found != nil {
			t.Errorf("%s: %q: a panic there would end the program with a trace; take workers.Group", rel, found)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
