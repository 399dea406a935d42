package outfile

import (
	"errors"
	"io/fs"
	"os"

	"github.com/gofrs/flock"

	"github.com/miplc/miplc/internal/infile"
)

// Lock prepares the lock of a lock file, which is made when it is locked. The error of
// a path that is not a regular file is an *fs.PathError: opening a pipe would block, and
// a link could lead to a file of somebody else.
func Lock(path string) (*flock.Flock, error) {
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "lock", Path: path, Err: errors.New("it is not a regular file: remove it")}
	}
	return flock.New(path, flock.SetPermissions(0o666), flock.SetFlag(os.O_CREATE|os.O_RDONLY|infile.NonBlocking)), nil
}
