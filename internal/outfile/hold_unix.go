//go:build unix

package outfile

import "github.com/gofrs/flock"

// hold marks a file aside as that of a living process: the lock goes with it. It
// gives nil where another process has just taken the file for abandoned.
func hold(path string) (release func()) {
	l := flock.New(path)
	free, err := l.TryLock()
	switch {
	case err != nil:
		return func() {} // a file system without locks: nothing is swept there
	case !free:
		return nil
	}
	return func() { l.Close() }
}

// abandoned says that the process that wrote a file aside is gone.
func abandoned(path string) bool {
	l := flock.New(path)
	defer l.Close()
	free, err := l.TryLock()
	return free && err == nil
}
