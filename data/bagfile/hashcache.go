// Hashes of large files, kept while the files do not change.

package bagfile

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/internal/fileio"
	"github.com/miplc/miplc/internal/libraries"
)

// hashCache keeps the hash of the instances of a table in miplc's cache, so that opening it again
// does not read all files. As in git's index, a hash is valid while all files have the same path,
// size, inode, and times of change. Programs can set the time of modification, but not that of the
// last change (ctime).
type hashCache struct {
	path string        // named after the hash of the files as they were when the table was opened
	age  time.Duration // minimum age of files
	last time.Time     // newest change of a file
}

const (
	// minCached is the minimum number of values: 64 MiB take less than a second.
	minCached = 1 << 24
	// minAge is the minimum age of a file whose hash is kept. A newer file could change again
	// without a new time, as some file systems count in steps of two seconds.
	minAge = 3 * time.Second
)

// hashCacheOf returns the cache for the files of a table, nil if the system does not report when a
// file was last changed, or if there is no cache folder.
func hashCacheOf(s *fileStore) data.HashCache {
	root, err := libraries.CacheDir()
	if err != nil {
		return nil
	}
	c, key := &hashCache{age: minAge}, sha256.New()
	for _, b := range s.files {
		path, err := filepath.Abs(b.path)
		if err != nil {
			return nil
		}
		state, changed, ok := fileio.State(b.info)
		if !ok {
			return nil
		}
		fmt.Fprintf(key, "%q %q %s\n", path, b.name, state)
		for _, t := range []time.Time{changed, b.info.ModTime()} {
			if c.last.Before(t) {
				c.last = t
			}
		}
	}
	c.path = filepath.Join(root, "hashes", hex.EncodeToString(key.Sum(nil)))
	return c
}

// hashCacheStart is the start of a file of the cache. The hash of the start of the dataset, the state and the SHA-256
// of everything before follow.
const hashCacheStart = "miplc hash of instances 2\n"

// Get returns the state of the hash that Put wrote for the same start, or nil.
func (c *hashCache) Get(start []byte) []byte {
	const most = 1 << 10
	b, err := fileio.ReadAtMost(c.path, most, "the cached hash")
	head := append([]byte(hashCacheStart), start...)
	if err != nil || len(b) < len(head)+sha256.Size || !bytes.HasPrefix(b, head) {
		return nil
	}
	b, sum := b[:len(b)-sha256.Size], b[len(b)-sha256.Size:]
	if want := sha256.Sum256(b); !bytes.Equal(sum, want[:]) {
		return nil
	}
	return b[len(head):]
}

// Put keeps the state of the hash of a dataset. A failure only means that the files are read again.
func (c *hashCache) Put(start, state []byte) {
	if time.Since(c.last) < c.age {
		return
	}
	b := slices.Concat([]byte(hashCacheStart), start, state)
	sum := sha256.Sum256(b)
	_ = fileio.Replace(c.path, append(b, sum[:]...))
}
