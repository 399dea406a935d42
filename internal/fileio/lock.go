// A lock that other processes see.

package fileio

import (
	"errors"
	"io/fs"
	"os"

	"github.com/gofrs/flock"
)

// NewLock returns a lock that is not yet held. Locking it creates the file path. If path is not a regular
// file, the error is an *fs.PathError: opening a pipe would block, and a link could point to another
// user's file.
func NewLock(path string) (*flock.Flock, error) {
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "lock", Path: path, Err: errors.New("it is not a regular file: remove it")}
	}
	return flock.New(path, flock.SetPermissions(0o666), flock.SetFlag(os.O_CREATE|os.O_RDONLY|nonBlocking)), nil
}
