// Limits on what a file may unpack to.

package rawfile

import (
	"fmt"
	"io"

	"github.com/miplc/miplc/internal/memory"
)

// Limit is the maximum uncompressed size of a data file in bytes. 0 is the default: 4 GiB, or
// the available memory if that is less.
type Limit int64

const defaultLimit = 4 << 30

// Bytes returns the limit in bytes, which is positive.
func (l Limit) Bytes() int64 {
	if l > 0 {
		return int64(l)
	}
	return int64(min(defaultLimit, memory.Available().Bytes))
}

// Compressed files may claim, and contain, a thousand times their own size. Real data
// compress to a tenth or a thirtieth of their size.
const (
	maxRatio   = 50
	freeUnpack = 200 << 20
)

// ForPacked returns the limit for a compressed file of size bytes: without an explicit limit
// it may expand to 50 times its size or 200 MiB, whichever is larger.
func (l Limit) ForPacked(size int64) Limit {
	if l > 0 {
		return l
	}
	return Limit(min(l.Bytes(), max(freeUnpack, maxRatio*min(size, defaultLimit))))
}

// TooLargeError reports that data are larger than a limit, after decompression if they are compressed.
type TooLargeError struct {
	What  string // e.g. "the text"
	Max   int64  // the limit in bytes
	Fixed bool   // the user cannot raise the limit
}

func (e *TooLargeError) Error() string {
	if e.Fixed {
		return fmt.Sprintf("%s is larger than %s (uncompressed), the limit for such a file", e.What,
			memory.Size(float64(e.Max)))
	}
	return fmt.Sprintf("%s is larger than the limit of %s (uncompressed); --max-bytes raises it, if the file can be "+
		"trusted", e.What, memory.Size(float64(e.Max)))
}

// boundedReader reads at most left bytes and then returns err. An io.LimitedReader would
// pretend that the data end there.
type boundedReader struct {
	r    io.Reader
	left int64
	err  *TooLargeError
}

// Bound returns a reader of at most left bytes of r. It returns err if there are more.
func Bound(r io.Reader, left int64, err *TooLargeError) io.Reader {
	return &boundedReader{r, left, err}
}

func (b *boundedReader) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if b.left <= 0 {
		var one [1]byte
		n, err := io.ReadFull(b.r, one[:])
		if n > 0 {
			return 0, b.err
		}
		return 0, err
	}
	if int64(len(p)) > b.left {
		p = p[:b.left]
	}
	n, err := b.r.Read(p)
	b.left -= int64(n)
	return n, err
}
