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

// cache stores features of images in files. The folder identifies the encoder, its preprocessing and
// the version of onnxruntime. A record consists of the SHA-256 of an image and its features. Files are written once and
// are complete or absent, so processes share the folder without locks. A damaged file is deleted.
type cache struct {
	dir     string
	width   int       // bytes of a record
	pending []byte    // records that are not in a file yet
	written time.Time // of the last file
}

// A file starts with cacheStart and ends with the SHA-256 of everything before. A file is written
// after maxPending records, or after maxWait.
const (
	cacheStart = "miplc features 1\n"
	maxPending = 4096
	maxWait    = 20 * time.Second
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

// read calls found with the records of all files, and deletes damaged files.
func (c *cache) read(found func(key sum, features []byte)) error {
	for _, path := range fileio.Glob(c.dir, "*.features") {
		content, err := fileio.Read(path)
		if errors.Is(err, os.ErrNotExist) {
			continue // another process deleted it
		}
		if err != nil {
			return fmt.Errorf("the cache of features: %w", err)
		}
		end := max(0, len(content)-sha256.Size)
		records, ok := bytes.CutPrefix(content[:end], []byte(cacheStart))
		if hash := sha256.Sum256(content[:end]); !ok || !bytes.Equal(hash[:], content[end:]) || len(records)%c.width != 0 {
			if err := os.Remove(path); err != nil {
				return err
			}
			continue
		}
		for record := range slices.Chunk(records, c.width) {
			found(sum(record), record[sha256.Size:])
		}
	}
	return nil
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
