// How much reloading reads.

package serve

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/miplc/miplc/internal/onnxpb"
)

// bytesRead returns the number of bytes that the process has read from files.
func bytesRead(t *testing.T) int {
	text, err := os.ReadFile("/proc/self/io")
	if err != nil {
		t.Skip(err)
	}
	n, err := strconv.Atoi(string(regexp.MustCompile(`rchar: (\d+)`).FindSubmatch(text)[1]))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// A file that is too large is not read, and one that was rejected is not read again until it changes.
func TestReloadReadsLittle(t *testing.T) {
	s := start(t)
	sparse := func(name string, size int64) string {
		path := filepath.Join(s.dir, name)
		f, err := os.Create(path)
		if err == nil {
			err = errors.Join(f.Truncate(size), f.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
	const small = 32 << 20
	reload := func(what string, reported bool, most int) {
		t.Helper()
		before := bytesRead(t)
		if _, err := s.models.reload(); (err != nil) != reported {
			t.Errorf("%s: %v", what, err)
		}
		if n := bytesRead(t) - before; n > most {
			t.Errorf("%s: %d bytes were read", what, n)
		}
	}
	huge := sparse("huge.onnx", onnxpb.MaxFile+1)
	reload("a file above the limit", true, small)
	reload("it is reported once", false, small)
	if err := os.Remove(huge); err != nil {
		t.Fatal(err)
	}
	bad := sparse("bad.onnx", small)
	reload("a file that is no model", true, 10*small)
	time.Sleep(clockResolution + 100*time.Millisecond) // before that, a change may be invisible
	reload("it may have changed", false, 10*small)
	reload("an unchanged file", false, small/2)
	if err := os.WriteFile(bad, []byte("no model"), 0o666); err != nil {
		t.Fatal(err)
	}
	reload("a changed file", true, small/2)
}
