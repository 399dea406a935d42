// File names that are safe to print.

package diag

import (
	"path/filepath"
	"strings"
	"testing"
)

// Different texts have different file names.
func TestFileName(t *testing.T) {
	seen := map[string]string{}
	for _, name := range []string{"a", ".a", "..a", "a b", "a_b", "a/b", "a+b", "ü", "ö", "数据一", "数据二", "/", "\\", "..",
		"x=1", "x 1"} {
		got := FileName(name)
		if other, found := seen[got]; found || got == "" || !filepath.IsLocal(got) || strings.ContainsAny(got, `/\ `) {
			t.Errorf("%q becomes %q, as %q", name, got, other)
		}
		seen[got] = name
	}
	for name, want := range map[string]string{"MNIST-MIPL r=1": "MNIST-MIPL_r=1",
		"demipl-train.lr=0.05": "demipl-train.lr=0.05"} {
		if got := FileName(name); got != want {
			t.Errorf("%q becomes %q, want %q", name, got, want)
		}
	}
}
