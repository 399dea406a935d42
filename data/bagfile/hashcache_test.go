// A hash is computed again if its file changes.

package bagfile

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/miplc/miplc/internal/libraries"
)

// A cached hash is valid only while no file has changed, also if a program restores the time of
// modification.
func TestHashCache(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("hashes are cached on Linux only")
	}
	t.Setenv(libraries.EnvCache, t.TempDir())
	table, _ := writeTable(t)
	d, err := Open(table)
	if err != nil {
		t.Fatal(err)
	}
	open := func() *hashCache {
		t.Helper()
		again, err := Open(table)
		if err != nil {
			t.Fatal(err)
		}
		c := hashCacheOf(again.Store.(*fileStore)).(*hashCache)
		c.age = 0
		return c
	}
	start, state := []byte("start"), []byte("state")
	c := hashCacheOf(d.Store.(*fileStore)).(*hashCache)
	if c.Put(start, state); c.Get(start) != nil {
		t.Error("the hash of a file that is newer than the steps of a file system was kept")
	}
	c.age = 0
	if c.Put(start, state); !bytes.Equal(c.Get(start), state) || !bytes.Equal(open().Get(start), state) {
		t.Error("the hash was not kept")
	}
	if c.Get([]byte("other")) != nil {
		t.Error("the hash is that of other labels")
	}

	path := filepath.Join(filepath.Dir(table), "c.npy")
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)-1] ^= 1
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, info.ModTime(), info.ModTime()); err != nil {
		t.Fatal(err)
	}
	if open().Get(start) != nil {
		t.Error("the hash of a changed file was returned")
	}

	c = open()
	c.Put(start, state)
	stored, err := os.ReadFile(c.path)
	if err != nil {
		t.Fatal(err)
	}
	stored[len(stored)-40] ^= 1
	if err := os.WriteFile(c.path, stored, 0o644); err != nil {
		t.Fatal(err)
	}
	if c.Get(start) != nil {
		t.Error("a damaged hash was returned")
	}
}

// stateOf is a cache with one state.
type stateOf struct{ start, state []byte }

func (s *stateOf) Get(start []byte) []byte {
	if bytes.Equal(start, s.start) {
		return s.state
	}
	return nil
}

func (s *stateOf) Put(start, state []byte) { s.start, s.state = start, state }

// A dataset whose hash is in the cache has that hash without reading a bag.
func TestCachedHash(t *testing.T) {
	table, want := writeTable(t)
	d, err := Open(table)
	if err != nil {
		t.Fatal(err)
	}
	cache := new(stateOf)
	if err := d.HashStored(cache); err != nil || cache.state == nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(filepath.Dir(table), "c.npy")); err != nil {
		t.Fatal(err)
	}
	if err := d.HashStored(cache); err != nil || d.Hash() != want.Hash() {
		t.Errorf("%v, hash %s", err, d.Hash())
	}
	if err := d.HashStored(&stateOf{start: cache.start, state: []byte("damaged")}); err == nil {
		t.Error("a damaged state was used")
	}
}
