// Requirements of tests, and the messages of tests that are skipped without them.

package testsupport

import (
	"bytes"
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Python returns a Python interpreter that has the packages, named as for pip: $MIPLC_PYTHON, else
// python3. It skips the test with the reason if there is none.
func Python(t testing.TB, packages ...string) string {
	t.Helper()
	program, err := exec.LookPath(cmp.Or(os.Getenv("MIPLC_PYTHON"), "python3"))
	if err != nil {
		t.Skipf("there is no Python, or MIPLC_PYTHON does not name it: %v", err)
	}
	modules := []string{"sys"} // a Python without packages works as well
	for _, p := range packages {
		modules = append(modules, regexp.MustCompile(`^\w+`).FindString(p))
	}
	if out, err := exec.Command(program, "-c", "import "+strings.Join(modules, ", ")).CombinedOutput(); err != nil {
		out = bytes.TrimSpace(out)
		t.Skipf("%s cannot import %s: pip install '%s'; MIPLC_PYTHON names another Python: %v: %s",
			program, strings.Join(modules[1:], ", "), strings.Join(packages, "' '"), err, out[bytes.LastIndexByte(out, '\n')+1:])
	}
	return program
}

// Data returns the path of a file or folder of the datasets in $MIPLC_DATA, or in ../shared/data
// relative to the module. It skips the test if it is missing; source says where to get it.
func Data(t testing.TB, name, source string) string {
	t.Helper()
	folder := os.Getenv("MIPLC_DATA")
	if folder == "" {
		folder = filepath.Join(root(t), "..", "shared", "data")
	}
	path := filepath.Join(folder, filepath.FromSlash(name))
	if _, err := os.Stat(path); err != nil {
		t.Skipf("there is no %s: %s; MIPLC_DATA names the folder of datasets", path, source)
	}
	return path
}

// A test may change the folder later.
var start, errStart = os.Getwd()

// root returns the folder of the module.
func root(t testing.TB) string {
	if errStart != nil {
		t.Fatal(errStart)
	}
	for dir := start; ; {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil || dir == filepath.Dir(dir) {
			return dir
		}
		dir = filepath.Dir(dir)
	}
}
