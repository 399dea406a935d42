// Small files of the cache are merged, and no features are lost in the meantime.

package encoder

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/miplc/miplc/internal/fileio"
)

const testFeatures = 3

// testCache is a cache in a folder.
func testCache(dir string) *cache {
	return &cache{dir: dir, width: sha256.Size + 4*testFeatures, written: time.Now()}
}

func keyOf(i int) (key sum) {
	binary.LittleEndian.PutUint64(key[:], uint64(i))
	return key
}

// fill writes a file with the features of images first to last-1.
func fill(t *testing.T, c *cache, first, last int) {
	t.Helper()
	for i := first; i < last; i++ {
		if err := c.put(keyOf(i), []float32{float32(i), 1, 2}); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.flush(); err != nil {
		t.Fatal(err)
	}
}

// records returns what a cache in the folder reads.
func records(t *testing.T, dir string) map[sum]string {
	t.Helper()
	got := map[sum]string{}
	if err := testCache(dir).read(func(key sum, features []byte) { got[key] = string(features) }); err != nil {
		t.Error(err)
	}
	return got
}

// files returns the content of all files of a cache.
func files(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	for _, path := range fileio.Glob(dir, "*") {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		all[path] = content
	}
	return all
}

// Many small files become one, full files stay, and a record that is in several files is kept once. If the process is
// killed before it has deleted the small files, the next one reads the same features and merges again.
func TestSmallFilesAreMerged(t *testing.T) {
	dir := t.TempDir()
	c := testCache(dir)
	fill(t, c, 100, 100+maxPending)
	full := files(t, dir)
	for i := range 2 * maxSmall {
		fill(t, c, i, i+3)
	}
	small := files(t, dir)
	want := records(t, dir)
	if n := maxPending + 2*maxSmall + 2; len(want) != n {
		t.Fatalf("%d records, want %d", len(want), n)
	}
	check := func(when string) {
		t.Helper()
		left := files(t, dir)
		if len(left) != 2 {
			t.Errorf("%s: %d files, want the full and the merged one", when, len(left))
		}
		for path, content := range full {
			if !bytes.Equal(left[path], content) {
				t.Errorf("%s: the full file was changed", when)
			}
		}
		if got := records(t, dir); !maps.Equal(got, want) {
			t.Errorf("%s: %d records, want %d", when, len(got), len(want))
		}
		bytes := 0
		for _, content := range left {
			bytes += len(content)
		}
		if most := len(want)*c.width + 2*(len(cacheStart)+sha256.Size); bytes != most {
			t.Errorf("%s: %d bytes, want %d: each record once", when, bytes, most)
		}
	}
	check("merged")
	for path, content := range small {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got := records(t, dir); !maps.Equal(got, want) {
		t.Errorf("after a kill: %d records, want %d", len(got), len(want))
	}
	check("merged again")
}

// Few small files stay as they are, and a damaged one among many is deleted.
func TestFewFilesStay(t *testing.T) {
	dir := t.TempDir()
	c := testCache(dir)
	for i := range maxSmall {
		fill(t, c, i, i+1)
	}
	before := files(t, dir)
	records(t, dir)
	if after := files(t, dir); !maps.EqualFunc(before, after, bytes.Equal) {
		t.Errorf("files %d, then %d", len(before), len(after))
	}
	fill(t, c, maxSmall, maxSmall+1)
	damaged := filepath.Join(dir, "DAMAGED.features")
	if err := os.WriteFile(damaged, []byte(cacheStart+"x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := records(t, dir); len(got) != maxSmall+1 {
		t.Errorf("%d records beside a damaged file, want %d", len(got), maxSmall+1)
	}
	if after := files(t, dir); len(after) != 1 || after[damaged] != nil {
		t.Errorf("%d files, want one", len(after))
	}
}

// Processes that read and merge at the same time all find all features.
func TestMergesInParallel(t *testing.T) {
	dir := t.TempDir()
	want := 0
	for range 20 {
		for range 2 * maxSmall {
			fill(t, testCache(dir), want, want+2)
			want += 2
		}
		var readers sync.WaitGroup
		for range 4 {
			readers.Go(func() {
				if got := records(t, dir); len(got) != want {
					t.Errorf("%d records, want %d", len(got), want)
				}
			})
		}
		readers.Wait()
	}
}
