// Inputs of fuzz targets.

package testsupport

import (
	"os"
	"path/filepath"
	"testing"
)

// AddFiles gives a fuzz target the contents of the files that match a pattern, at least one.
func AddFiles(f *testing.F, pattern string) {
	f.Helper()
	names, err := filepath.Glob(pattern)
	if err != nil || len(names) == 0 {
		f.Fatalf("no files match %s: %v", pattern, err)
	}
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
}
