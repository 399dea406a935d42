// Promises of earlier versions, compared with what users can rely on now.

package testsupport

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// PromisesFolder returns the folder internal/compatibility, which has a folder for each minor version that
// promised something. Packages with keys, commands, results, model files and exported names compare theirs.
func PromisesFolder(t testing.TB) string { return filepath.Join(root(t), "internal", "compatibility") }

// CheckPromises fails for each line of the files VERSION/NAME.txt in PromisesFolder that got lacks: a
// version promised it. Lines of got that no file has are new promises: -update adds them to the file of the newest
// version, which is to be read before a release. Promised lines never change.
func CheckPromises(t testing.TB, name string, got []string) {
	t.Helper()
	versions, err := filepath.Glob(filepath.Join(PromisesFolder(t), "[0-9]*.[0-9]*"))
	if err != nil || len(versions) == 0 {
		t.Fatalf("no version promises anything: %v", err)
	}
	slices.SortFunc(versions, func(a, b string) int { return len(a) - len(b) + strings.Compare(a, b) })
	var promised []string
	var newest string
	for _, folder := range versions {
		newest = filepath.Join(folder, name+".txt")
		text, err := os.ReadFile(newest)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			line = strings.TrimSuffix(line, "\n")
			promised = append(promised, line)
			if !slices.Contains(got, line) {
				t.Errorf("version %s promises this, but it is gone or different (docs/compatibility.md):\n%s",
					filepath.Base(folder), line)
			}
		}
	}
	added := slices.DeleteFunc(slices.Compact(slices.Sorted(slices.Values(got))), func(line string) bool {
		return slices.Contains(promised, line)
	})
	if len(added) == 0 {
		return
	}
	text := strings.Join(added, "\n") + "\n"
	if !Update() {
		t.Errorf("new: if users shall rely on this, run the test with -update and add a line to CHANGELOG.md\n%s", text)
		return
	}
	f, err := os.OpenFile(newest, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(text); err != nil {
		t.Error(err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

// CheckPromisedKeys is CheckPromises for the keys of a JSON Schema, each with its words and its default.
func CheckPromisedKeys(t testing.TB, name string, schema []byte) {
	t.Helper()
	var tree any
	if err := json.Unmarshal(schema, &tree); err != nil {
		t.Fatal(err)
	}
	CheckPromises(t, name, keys("", tree))
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
