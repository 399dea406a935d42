// Bad IDX files are refused.

package generate

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/internal/testkit/testsupport"
)

var badIDX = []struct {
	name  string
	bytes string
}{
	{"truncated-idx1-ubyte", "\x00\x00\x08\x01\x00\x00\x00\x03\x01\x02"},
	{"header-idx1-ubyte", "\x00\x00\x08\x01\x00\x00"},
	{"long-idx1-ubyte", "\x00\x00\x08\x01\x00\x00\x00\x03\x01\x02\x03\x04"},
	{"magic-idx1-ubyte", "PNG or so"},
	{"type-idx1-float", "\x00\x00\x0d\x01\x00\x00\x00\x01\x00\x00\x00\x00"},
	{"axes-idx", "\x00\x00\x08\x00"},
	{"claims-idx3-ubyte", "\x00\x00\x08\x03\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"},
	{"packed-idx1-ubyte", "\x1f\x8b\x08\x00"},
	{"not-packed-idx1-ubyte.gz", "\x00\x00\x08\x01\x00\x00\x00\x03\x01\x02\x03"},
}

func TestBadIDX(t *testing.T) {
	for _, c := range badIDX {
		path := filepath.Join(t.TempDir(), c.name)
		if err := os.WriteFile(path, []byte(c.bytes), 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := openIDXIn(filepath.Dir(path), strings.TrimSuffix(c.name, ".gz"), 1<<20)
		if err == nil {
			t.Errorf("%s was read without an error", c.name)
			continue
		}
		testsupport.CheckGolden(t, filepath.Join("testdata", "bad", c.name+".out"), strings.ReplaceAll(err.Error(), path,
			c.name)+"\n")
	}
}

func FuzzIDX(f *testing.F) {
	f.Add([]byte{0, 0, 8, 3, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 2, 1, 2, 3, 4})
	for _, b := range badIDX {
		f.Add([]byte(b.bytes))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		x, err := readIDX(bytes.NewReader(b), 1<<22)
		if err != nil {
			return
		}
		if n, ok := ndarray.SizeWithin(x.Shape, math.MaxInt); !ok || n != len(x.Bytes) {
			t.Errorf("%d bytes for the shape %v", len(x.Bytes), x.Shape)
		}
	})
}
