// Files with a known SHA-256.

package native

import (
	"io/fs"
	"os"
	"sync"

	"github.com/miplc/miplc/internal/fileio"
)

// hashed caches hashes in the process, because one command searches for a library several times.
// They are not cached on disk: whoever can replace the library could replace the cache too.
var hashed = struct {
	sync.Mutex
	files map[string]hashedFile
}{files: map[string]hashedFile{}}

type hashedFile struct {
	info fs.FileInfo
	sum  string
}

// hashOf returns the SHA-256 of a file. info describes the file at path now.
func hashOf(path string, info fs.FileInfo) (string, error) {
	hashed.Lock()
	defer hashed.Unlock()
	if h, ok := hashed.files[path]; ok && unchanged(h.info, info) {
		return h.sum, nil
	}
	sum, err := fileio.SHA256(path)
	if err == nil {
		hashed.files[path] = hashedFile{info, sum}
	}
	return sum, err
}

// unchanged reports whether a and b describe the same content of the same file. Where the system has
// no State, a program that sets the modification time can hide a change.
func unchanged(a, b fs.FileInfo) bool {
	before, _, _ := fileio.State(a)
	now, _, _ := fileio.State(b)
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime()) && before == now
}
