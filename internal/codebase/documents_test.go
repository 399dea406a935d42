// Links in documents lead somewhere.

package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	conflict = regexp.MustCompile(`(?m)^(<<<<<<<|>>>>>>>) `)
	link     = regexp.MustCompile(`\]\(([^)#\s]*)(?:#([^)\s]*))?\)`)
	fenced   = regexp.MustCompile("(?ms)^```.*?^```")
	heading  = regexp.MustCompile(`(?m)^#+ +(.*)$`)
	marks    = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	// named is the name of a declaration and the file that has it, such as `Judge` (runs/judge/findings.go).
	named = regexp.MustCompile("`(?:\\w+\\.)?(\\w+)` \\(([\\w/]+/\\w+\\.go)\\)")
)

// TestDocuments checks that documents have no merge markers and that their links lead to files and
// headings that exist.
func TestDocuments(t *testing.T) {
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := entry.Name(); entry.IsDir() && (name == ".git" || name == "node_modules" || name == "corpus" ||
			name == "fuzz") {
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
			target, to := path, string(m[1])
			if strings.Contains(to, ":") {
				continue
			}
			if to != "" {
				target = filepath.Join(filepath.Dir(path), filepath.FromSlash(to))
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: the target of the link does not exist: %s", path, to)
			} else if anchor := string(m[2]); anchor != "" && !slices.Contains(anchors(t, target), anchor) {
				t.Errorf("%s: %s has no heading for #%s", path, target, anchor)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestNamesInDocuments checks that a declaration is in the file that a document names behind it.
func TestNamesInDocuments(t *testing.T) {
	found := 0
	for _, path := range []string{"docs/architecture.md", "docs/tour.md", "CONTRIBUTING.md"} {
		text, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range named.FindAllStringSubmatch(string(text), -1) {
			found++
			code, err := os.ReadFile(filepath.Join(root, m[2]))
			declared := regexp.MustCompile(`(?m)^(func (\(.*\) )?|type |var |const |\t)` + m[1] + `\b`)
			if err != nil || !declared.Match(code) {
				t.Errorf("%s: %s does not declare %s (%v)", path, m[2], m[1], err)
			}
		}
	}
	if found < 10 {
		t.Errorf("only %d names of declarations found", found)
	}
}

// anchors returns the anchors of the headings of a Markdown file, as GitHub makes them.
func anchors(t *testing.T, path string) (list []string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range heading.FindAllSubmatch(fenced.ReplaceAll(text, nil), -1) {
		list = append(list, strings.ReplaceAll(marks.ReplaceAllString(strings.ToLower(string(m[1])), ""), " ", "-"))
	}
	return list
}

var textual = map[string]bool{".md": true, ".go": true, ".yaml": true, ".yml": true, ".sh": true, ".py": true,
	".html": true, ".js": true, ".json": true, ".txtar": true}
