// Limits on what a file may unpack to.

package rawfile

import (
	"cmp"
	"io"

	"github.com/miplc/miplc/internal/resources"
)

// Limit is the maximum uncompressed size of a data file in bytes. 0 is the default: 4 GiB, or
// the available memory if that is less.
type Limit int64

const defaultLimit = 4 << 30

// Budget returns the limit, which is positive, and what determines it.
func (l Limit) Budget() resources.Budget {
	budget := resources.Budget{Bytes: float64(cmp.Or(l, defaultLimit)), Bound: "uncompressed, --max-bytes"}
	if free := resources.Memory(); l == 0 && free.Bytes < budget.Bytes {
		return free
	}
	return budget
}

// Exceeded returns the error for data above the limit, e.g. "the text".
func (l Limit) Exceeded(what string) *resources.MemoryError {
	return &resources.MemoryError{What: what, Budget: l.Budget(),
		Advice: "set a higher --max-bytes if the file can be trusted"}
}

// FixedLimit returns the error for data above a limit in bytes that the user cannot raise.
func FixedLimit(what string, bytes int64) *resources.MemoryError {
	return &resources.MemoryError{What: what,
		Budget: resources.Budget{Bytes: float64(bytes), Bound: "the limit for such a file"},
		Advice: "check that it is the right file"}
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
	if most := max(freeUnpack, maxRatio*min(size, defaultLimit)); l == 0 && float64(most) < l.Budget().Bytes {
		return Limit(most)
	}
	return l
}

// boundedReader reads at most left bytes and then returns err. An io.LimitedReader would
// pretend that the data end there.
type boundedReader struct {
	r    io.Reader
	left int64
	err  *resources.MemoryError
}

// Bound returns a reader of at most left bytes of r. It returns err if there are more.
func Bound(r io.Reader, left int64, err *resources.MemoryError) io.Reader {
	return &boundedReader{r, left, err}
}

func (b *boundedReader) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, b.err
	}
	p = p[:min(int64(len(p)), b.left+1)] // one more byte shows that there are more
	n, err := b.r.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return n - 1, b.err
	}
	return n, err
}
