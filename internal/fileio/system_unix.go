//go:build unix

// Locks of temporary files.

package fileio

import (
	"syscall"

	"github.com/gofrs/flock"
)

// nonBlocking is the flag of os.OpenFile with which opening a named pipe does not wait for the
// process at its other end.
const nonBlocking = syscall.O_NONBLOCK

// lockTemp locks a temporary file, which shows that its process is alive: the lock ends with the
// process. It returns nil if another process is just removing the file as abandoned.
func lockTemp(path string) (release func()) {
	l := flock.New(path)
	free, err := l.TryLock()
	switch {
	case err != nil:
		return func() {} // file system without locks: abandoned files are not removed there
	case !free:
		return nil
	}
	return func() { l.Close() }
}

// abandoned reports whether the process that wrote a temporary file has ended.
func abandoned(path string) bool {
	l := flock.New(path)
	defer l.Close()
	free, err := l.TryLock()
	return free && err == nil
}
