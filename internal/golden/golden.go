// Package golden holds what tests make to files that were read and accepted.
// It is for tests: importing it gives them the flag -update.
package golden

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// Update reports whether the files are to be rewritten.
func Update() bool { return *update }

// Check compares got with the file at path, or with -update writes it there.
func Check[Text ~string | ~[]byte](t testing.TB, path string, got Text) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (run the tests with -update to write it)", err)
	}
	if d := cmp.Diff(string(want), string(got)); d != "" {
		t.Errorf("%s differs (-want +got); if the change is meant, run the tests with -update and read the difference\n%s", path, d)
	}
}
