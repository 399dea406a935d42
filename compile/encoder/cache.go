// Computed features, kept in the cache of the user.

package encoder

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/miplc/miplc/internal/contract"
	"github.com/miplc/miplc/internal/fileio"
	"github.com/miplc/miplc/internal/libraries"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/internal/onnxruntime"
)

// cache stores features of images in files. The folder identifies the encoder, its preprocessing and the version of
// onnxruntime. A record consists of the SHA-256 of an image and its features. Files are written once and are complete
// or absent. A file is deleted if it is damaged, or if all its records are in another file. So processes share the
// folder without locks, and a process that is killed loses at most the records that are not in a file yet.
type cache struct {
	dir     string
	width   int       // bytes of a record
	pending []byte    // records that are not in a file yet
	written time.Time // of the last file
}

// A file starts with cacheStart and ends with the SHA-256 of everything before. A file is written
// after maxPending records, or after maxWait. More than maxSmall files with fewer records are merged.
const (
	cacheStart = "miplc features 1\n"
	maxPending = 4096
	maxWait    = 20 * time.Second
	maxSmall   = 8
)

// openCache returns the cache of an encoder.
func openCache(e *contract.Encoder) (*cache, error) {
	lib, err := onnxruntime.Start("")
	if err != nil {
		return nil, err
	}
	root, err := libraries.CacheDir()
	return &cache{
		dir:   filepath.Join(root, "features", e.Identity()+"-onnxruntime-"+lib.Version),
		width: sha256.Size + 4*e.Features, written: time.Now(),
	}, err
}

// read calls found with the records of all files, deletes damaged files and merges small ones.
func (c *cache) read(found func(key sum, features []byte)) error {
	paths := fileio.Glob(c.dir, "*.features")
	m := merge{cache: c}
	if small := slices.DeleteFunc(slices.Clone(paths), c.full); len(small) > maxSmall {
		m.small, m.kept = small, map[sum]bool{}
	}
	read := map[string]bool{}
	for vanished := true; vanished; paths = fileio.Glob(c.dir, "*.features") {
		vanished = false
		for _, path := range paths {
			if read[path] {
				continue
			}
			read[path] = true
			records, err := c.records(path)
			if errors.Is(err, os.ErrNotExist) {
				vanished = true // another process merged it, perhaps to a file that is not in paths
				continue
			}
			if err != nil {
				return fmt.Errorf("the cache of features: %w", err)
			}
			for record := range slices.Chunk(records, c.width) {
				found(sum(record), record[sha256.Size:])
			}
			m.add(path, records)
		}
	}
	m.finish()
	return nil
}

// full reports whether a file has too many records for a merge.
func (c *cache) full(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Size() >= int64(len(cacheStart)+maxPending*c.width+sha256.Size)
}

// records returns the records of a file. A damaged file is deleted and has none.
func (c *cache) records(path string) ([]byte, error) {
	content, err := fileio.Read(path)
	if err != nil {
		return nil, err
	}
	end := max(0, len(content)-sha256.Size)
	records, ok := bytes.CutPrefix(content[:end], []byte(cacheStart))
	if hash := sha256.Sum256(content[:end]); !ok || !bytes.Equal(hash[:], content[end:]) || len(records)%c.width != 0 {
		return nil, os.Remove(path)
	}
	return records, nil
}

// merge copies the records of small files to new files, each record once, and then deletes the small files.
type merge struct {
	*cache
	small []string // paths of the files; empty: there is nothing to merge
	kept  map[sum]bool
	added []string // files whose records are copied
}

// add copies the records of a file if it is a small one. After an error the small files stay, because the cache works
// with them, too.
func (m *merge) add(path string, records []byte) {
	if !slices.Contains(m.small, path) {
		return
	}
	for record := range slices.Chunk(records, m.width) {
		if !m.kept[sum(record)] {
			m.kept[sum(record)] = true
			m.pending = append(m.pending, record...)
		}
		if len(m.pending) == maxPending*m.width && m.flush() != nil {
			m.small, m.added = nil, nil
			return
		}
	}
	m.added = append(m.added, path)
}

// finish writes the remaining records, and deletes the files that were copied.
func (m *merge) finish() {
	if m.flush() != nil {
		return
	}
	for _, path := range m.added {
		_ = os.Remove(path) // a file that stays is merged again
	}
}

// put adds the features of an image.
func (c *cache) put(key sum, features []float32) error {
	c.pending = ndarray.AppendBytes(append(c.pending, key[:]...), features)
	if len(c.pending) < maxPending*c.width && time.Since(c.written) < maxWait {
		return nil
	}
	return c.flush()
}

// flush writes the pending records to a file.
func (c *cache) flush() error {
	if len(c.pending) == 0 {
		return nil
	}
	content := append([]byte(cacheStart), c.pending...)
	end := sha256.Sum256(content)
	c.pending, c.written = c.pending[:0], time.Now()
	if err := os.MkdirAll(c.dir, 0o777); err != nil {
		return fmt.Errorf("the features cannot be cached: %w; %s names another folder", err, libraries.EnvCache)
	}
	return fileio.Replace(filepath.Join(c.dir, rand.Text()+".features"), append(content, end[:]...))
}
