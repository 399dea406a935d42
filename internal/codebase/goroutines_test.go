// Goroutines are started where panics are caught.

package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// started matches code that starts a goroutine in which a panic would end the program.
var started = regexp.MustCompile(`(?m)^\s*go (func\b|[\w.]+\()|sync\.WaitGroup|errgroup\.`)

// TestGoroutines checks that goroutines are started by resources.Group, or in a file that recovers
// panics itself, because no panic may reach a user. Examples are exempt: users cannot import the
// internal packages.
func TestGoroutines(t *testing.T) {
	recovers := map[string]bool{"internal/resources/workers.go": true, "cmd/miplc/internal/cli/main.go": true,
		"train/steps.go": true}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := entry.Name(); entry.IsDir() && (name == "testdata" || name == ".git" || name == "node_modules" ||
			name == "examples") {
			return filepath.SkipDir
		}
		rel, err := filepath.Rel(root, path)
		if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") ||
			recovers[filepath.ToSlash(rel)] {
			return err
		}
		text, err := os.ReadFile(path)
		if found := started.Find(text); found != nil {
			t.Errorf("%s: %q: a panic in this goroutine would end the program; use resources.Group", rel, found)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
