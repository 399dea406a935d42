// Line ends, compression, and the advice for Parquet.

package rawfile

import (
	"strings"
	"testing"
)

// Line ends and the limit on the line length do not depend on the size of the reads.
func TestLineReader(t *testing.T) {
	for _, text := range []string{"a\r\nb\rc\n\r\r\nd\r", "\n\n\r\n", ""} {
		want := strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
		for size := 1; size <= len(text)+1; size++ {
			var got []byte
			r, p := &lineReader{r: strings.NewReader(text)}, make([]byte, size)
			for {
				n, err := r.Read(p)
				if got = append(got, p[:n]...); err != nil {
					break
				}
			}
			if string(got) != want {
				t.Errorf("%q by %d: %q", text, size, got)
			}
		}
	}
}

// By default a compressed file may expand to 50 times its size or 200 MiB, whichever is larger. A
// given limit replaces the default.
func TestUnpacking(t *testing.T) {
	most := int64(Limit(0).Budget().Bytes)
	for _, c := range []struct{ given, size, want int64 }{
		{0, 0, 200 << 20}, {0, 1 << 20, 200 << 20}, {0, 10 << 20, 500 << 20}, {0, 1 << 40, most},
		{1 << 33, 1, 1 << 33}, {5, 1 << 30, 5},
	} {
		if got := int64(Limit(c.given).ForPacked(c.size).Budget().Bytes); got != min(c.want, max(c.given, most)) {
			t.Errorf("limit %d, file of %d bytes: %d, want %d", c.given, c.size, got, c.want)
		}
	}
}
