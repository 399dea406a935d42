// Files whose names look like the name of a file that does not exist.

package fileio

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/miplc/miplc/internal/diag"
)

// maxAlike is the maximum number of files of a folder that are compared with a missing one.
const maxAlike = 10_000

// WithAlike adds to the error that a file does not exist the path of one that does and looks alike: its name differs in
// case, spaces or Unicode form, or its path has slashes instead of backslashes.
func WithAlike(d diag.Diagnostic, path string) diag.Diagnostic {
	if found := strings.ReplaceAll(path, `\`, "/"); found != path {
		if _, err := os.Stat(found); err == nil {
			d.Suggestion = found
			return d.WithNote("paths have slashes on this system, not backslashes")
		}
	}
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		return d
	}
	defer folder.Close()
	names, _ := folder.Readdirnames(maxAlike)
	for _, name := range names {
		if difference := diag.Difference(filepath.Base(path), name); difference != "" {
			d.Suggestion = filepath.Join(filepath.Dir(path), name)
			return d.WithNote("the names differ %s only", difference)
		}
	}
	return d
}
