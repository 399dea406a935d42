// Computed features, kept in the cache of the user.

package encoder

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/miplc/miplc/internal/contract"
	"github.com/miplc/miplc/internal/fileio"
	"github.com/miplc/miplc/internal/native"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/internal/onnxruntime"
)

// cache stores features of images in files. The folder identifies the encoder, its preprocessing and
// the version of onnxruntime, a record the image. Files are written once and are complete or absent,
// so processes share the folder without locks. A damaged file is deleted.
type cache struct {
	dir     string
	width   int // bytes of a record
	files   []*os.File
	records map[sum]record

	pending bytes.Buffer // records that are not in a file yet
	count   int          // of records in pending
	written time.Time    // of the last file
}

// record is where features are.
type record struct {
	file   *os.File
	offset int64
}

// A file starts with cacheStart and ends with the SHA-256 of everything before. A file is written
// after maxPending records, or after maxWait.
const (
	cacheStart = "miplc features 1\n"
	maxPending = 4096
	maxWait    = 20 * time.Second
)

// openCache opens the files of an encoder.
func openCache(e *contract.Encoder, library string) (*cache, error) {
	lib, err := onnxruntime.Start(library)
	if err != nil {
		return nil, err
	}
	root, err := native.CacheDir()
	if err != nil {
		return nil, err
	}
	c := &cache{
		dir:   filepath.Join(root, "features", e.Identity()+"-onnxruntime-"+lib.Version),
		width: sha256.Size + 4*e.Features, records: map[sum]record{}, written: time.Now(),
	}
	paths, err := filepath.Glob(filepath.Join(c.dir, "*.features"))
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		if err := c.add(path); err != nil {
			c.close()
			return nil, err
		}
	}
	return c, nil
}

// add reads the index of a file, and deletes the file if it is damaged.
func (c *cache) add(path string) error {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil // another process deleted it
	}
	if err != nil {
		return err
	}
	found, err := c.index(f)
	if err != nil {
		f.Close()
		return os.Remove(path)
	}
	c.files = append(c.files, f)
	for key, offset := range found {
		c.records[key] = record{f, offset}
	}
	return nil
}

var errDamaged = errors.New("the file is damaged")

// index reads the whole file and returns the offsets of the features of each image.
func (c *cache) index(f *os.File) (map[sum]int64, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	size := info.Size() - int64(len(cacheStart)) - sha256.Size
	if !info.Mode().IsRegular() || size < 0 || size%int64(c.width) != 0 {
		return nil, errDamaged
	}
	hash := sha256.New()
	r := io.TeeReader(bufio.NewReaderSize(io.LimitReader(f, info.Size()-sha256.Size), 1<<20), hash)
	start := make([]byte, len(cacheStart))
	if _, err := io.ReadFull(r, start); err != nil || string(start) != cacheStart {
		return nil, errDamaged
	}
	found, row := map[sum]int64{}, make([]byte, c.width)
	for at := int64(len(cacheStart)); at < int64(len(cacheStart))+size; at += int64(c.width) {
		if _, err := io.ReadFull(r, row); err != nil {
			return nil, errDamaged
		}
		found[sum(row)] = at + sha256.Size
	}
	want := make([]byte, sha256.Size)
	if _, err := f.ReadAt(want, info.Size()-sha256.Size); err != nil || !bytes.Equal(want, hash.Sum(nil)) {
		return nil, errDamaged
	}
	return found, nil
}

// get copies the features of an image, if they are in a file.
func (c *cache) get(key sum, to []float32) (bool, error) {
	at, ok := c.records[key]
	if !ok {
		return false, nil
	}
	raw := make([]byte, 4*len(to))
	if _, err := at.file.ReadAt(raw, at.offset); err != nil {
		return false, fmt.Errorf("the cache of features: %w", err)
	}
	copy(to, ndarray.FromBytes[float32](raw))
	return true, nil
}

// put adds the features of an image.
func (c *cache) put(key sum, features []float32) error {
	c.pending.Write(key[:])
	c.pending.Write(ndarray.AppendBytes(nil, features))
	if c.count++; c.count < maxPending && time.Since(c.written) < maxWait {
		return nil
	}
	return c.flush()
}

// flush writes the pending records to a file.
func (c *cache) flush() error {
	if c.count == 0 {
		return nil
	}
	content := append([]byte(cacheStart), c.pending.Bytes()...)
	end := sha256.Sum256(content)
	c.pending.Reset()
	c.count, c.written = 0, time.Now()
	if err := os.MkdirAll(c.dir, 0o777); err != nil {
		return fmt.Errorf("the features cannot be cached: %w; %s names another folder", err, native.EnvCache)
	}
	return fileio.Replace(filepath.Join(c.dir, rand.Text()+".features"), append(content, end[:]...))
}

// close writes the pending features and closes the files.
func (c *cache) close() {
	_ = c.flush() // after an error, which says more
	for _, f := range c.files {
		f.Close()
	}
}
