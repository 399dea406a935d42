// Files that unpack to more than the limit are refused.

package bagfile

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// A small archive that expands to a huge one is rejected before it is read.
func TestSmallArchiveOfMuch(t *testing.T) {
	var packed bytes.Buffer
	z, err := gzip.NewWriterLevel(&packed, gzip.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	text := "bag,label,candidates,f1\n" + strings.Repeat("1,0,0 1,0.5\n", 4<<20/12)
	for range 60 {
		if _, err := z.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		text = "1,0,0 1," + strings.Repeat("0", 4<<20) + "\n"
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "bomb.csv.gz")
	if err := os.WriteFile(path, packed.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path); err == nil || !strings.Contains(err.Error(),
		"the text needs more than 200 MiB of memory (uncompressed, --max-bytes)") {
		t.Errorf("%d bytes: %v", packed.Len(), err)
	}
}

// Rows and class lists that would cost seconds and gigabytes are rejected before they are split
// into fields.
func TestCSVBombs(t *testing.T) {
	var classes strings.Builder
	for i := range maxClasses + 1 {
		fmt.Fprintf(&classes, " c%d", i)
	}
	for name, c := range map[string]struct{ text, want string }{
		"header": {"bag,label,candidates" + strings.Repeat(",f", 4_000_000), "more than 524288 fields"},
		"row":    {"bag,label,candidates,f1\n1,a,a" + strings.Repeat(";", 8_000_000), "more than 524288 fields"},
		"tabs":   {"bag\tlabel\tcandidates\tf1\n1\ta\ta" + strings.Repeat("\t", 1_000_000), "more than 524288 fields"},
		"line":   {"bag,label,candidates,f1\n" + strings.Repeat("x", 9_000_000), "longer than 8 MiB"},
		"classes": {classesLine + classes.String() + "\nbag,label,candidates,f1\n1,c1,c1 c2,1\n",
			"more than the limit of 65536"},
		"candidates": {"bag,label,candidates,f1\n1,c1," + classes.String() + ",1\n", "more than 65536 classes"},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		done := make(chan error, 1)
		go func() {
			_, err := decodeCSV(strings.NewReader(c.text), "bomb.csv", Reading{})
			done <- err
		}()
		select {
		case err := <-done:
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v", name, err)
			}
		case <-time.After(5 * time.Second):
			t.Fatalf("%s is not rejected within 5 s", name)
		}
		runtime.ReadMemStats(&after)
		if allocated := (after.TotalAlloc - before.TotalAlloc) >> 20; allocated > 128 {
			t.Errorf("%s: %d MiB were allocated for %d MiB of text", name, allocated, len(c.text)>>20)
		}
	}
}
