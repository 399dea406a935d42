package codebase

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	conflict = regexp.MustCompile(`(?m)^(<<<<<<<|>>>>>>>) `)
	link     = regexp.MustCompile(`\]\(([^)#\s]+)[^)\s]*\)`)
)

// TestDocuments checks that documents have no merge markers and that their links lead to files that
// exist.
func TestDocuments(t *testing.T) {
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := entry.Name(); entry.IsDir() && (name == ".git" || name == "node_modules" || name == "corpus" || name == "fuzz") {
			return filepath.SkipDir
		}
		if !textual[filepath.Ext(path)] || entry.IsDir() {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if found := conflict.FindIndex(text); found != nil {
			t.Errorf("%s:%d: unresolved merge conflict", path, 1+strings.Count(string(text[:found[0]]), "\n"))
		}
		if filepath.Ext(path) != ".md" || strings.Contains(filepath.ToSlash(path), "/testdata/") {
			return nil
		}
		for _, m := range link.FindAllSubmatch(text, -1) {
			target := string(m[1])
			if strings.Contains(target, ":") {
				continue
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(path), filepath.FromSlash(target))); err != nil {
				t.Errorf("%s: the target of the link does not exist: %s", path, target)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

var textual = map[string]bool{".md": true, ".go": true, ".yaml": true, ".yml": true, ".sh": true, ".py": true, ".html": true, ".js": true, ".json": true, ".txtar": true}
