// Pages in a browser without a window.

package testsupport

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Browser returns the program of Chromium: $MIPLC_BROWSER, else chromium. It skips the test if there
// is none.
func Browser(t testing.TB) string {
	t.Helper()
	browser, err := exec.LookPath(cmp.Or(os.Getenv("MIPLC_BROWSER"), "chromium"))
	if err != nil {
		t.Skipf("there is no Chromium, or MIPLC_BROWSER does not name it: %v", err)
	}
	return browser
}

// Page opens a page of the folder examples in Chromium without a window and returns what the page
// reports. The caller's folder is examples. It skips the test with the reason if there is
// no Chromium, Python or onnxruntime-web, and fails it if the page reports an error.
func Page(t testing.TB, page string) []byte {
	t.Helper()
	python, browser := Python(t), Browser(t)
	if _, err := os.Stat("node_modules/onnxruntime-web"); err != nil {
		t.Skip("there is no onnxruntime-web: npm ci in the folder examples")
	}
	out, err := exec.Command(python, "serve.py", browser, page).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", page, err, out)
	}
	return out
}

// PageFolder returns a new folder in the current one, which a page can load. The test removes it at
// its end.
func PageFolder(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp(".", "build-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Base(dir)
}
