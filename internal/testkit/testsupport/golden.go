// Package testsupport compares golden files and finds the external requirements of tests.
// A test that imports it has the flag -update.
package testsupport

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// Update reports whether -update was given.
func Update() bool { return *update }

// CheckGolden compares got with the file at path, or writes it there with -update.
func CheckGolden[Text ~string | ~[]byte](t testing.TB, path string, got Text) {
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
		t.Errorf("%s differs (-want +got); if the change is meant, run the tests with -update and read the difference\n%s",
			path, d)
	}
}
