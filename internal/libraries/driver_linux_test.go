//go:build linux && cgo && (amd64 || arm64)

// NVIDIA's driver, played by a library of the tests.

package libraries

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The driver is loaded neither from the working folder, which an empty element of LD_LIBRARY_PATH
// means, nor from folders that others can write to.
func TestByName(t *testing.T) {
	dir := t.TempDir()
	good, open, work := filepath.Join(dir, "good"), filepath.Join(dir, "open"), filepath.Join(dir, "work")
	for _, dir := range []string{good, open, work} {
		if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, driverLibrary), nil,
			0o644)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(open, 0o777); err != nil {
		t.Fatal(err)
	}
	t.Chdir(work)
	for path, want := range map[string]string{
		"": driverLibrary, "/nowhere": driverLibrary, good: filepath.Join(good, driverLibrary), "/nowhere:" + good + ":" +
			open: filepath.Join(good, driverLibrary),
	} {
		if got, err := byName(driverLibrary, path); err != nil || got != want {
			t.Errorf("LD_LIBRARY_PATH=%q: %s, %v; want %s", path, got, err, want)
		}
	}
	for _, path := range []string{":/nowhere", "/nowhere:", ".", open, open + ":" + good} {
		if got, err := byName(driverLibrary, path); err == nil || !strings.Contains(err.Error(), "refused") {
			t.Errorf("LD_LIBRARY_PATH=%q: took %s, %v", path, got, err)
		}
	}
}
