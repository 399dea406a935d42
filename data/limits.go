package data

import (
	"fmt"
	"io"

	"github.com/miplc/miplc/internal/memory"
)

// defaultMaxBytes is how much unpacked data a file may hold unless Options
// says otherwise.
const defaultMaxBytes = 4 << 30

// Options bounds what reading a file may cost.
type Options struct {
	// MaxBytes is the most bytes of unpacked data that are read. Packed files
	// can claim, and hold, a thousand times their own size. 0 means
	// defaultMaxBytes, or what memory there is where that is less.
	MaxBytes int64
	Columns  Columns // of CSV files
	// KnownLabels makes the true label the only candidate of each bag: the file needs no
	// candidates, and every bag needs a label.
	KnownLabels bool
}

func (o Options) max() int64 {
	if o.MaxBytes > 0 {
		return o.MaxBytes
	}
	return int64(min(defaultMaxBytes, memory.Available().Bytes))
}

// Bounds of what a packed file may unpack to: honest data take a tenth to a
// thirtieth of their size, and every byte takes time to read.
const (
	maxRatio   = 50
	freeUnpack = 200 << 20
)

// unpacking bounds the work that a packed file of that size may cause, unless the
// caller set a limit.
func (o Options) unpacking(size int64) Options {
	if o.MaxBytes <= 0 {
		o.MaxBytes = min(o.max(), max(freeUnpack, maxRatio*min(size, defaultMaxBytes)))
	}
	return o
}

// tooLargeError says that a file unpacks to more than Options.MaxBytes, or than is
// ever read of its kind.
type tooLargeError struct {
	what  string
	max   int64
	fixed bool
}

func (e *tooLargeError) Error() string {
	if e.fixed {
		return fmt.Sprintf("%s unpacks to more than %s, the most that is read of such a file", e.what, byteSize(e.max))
	}
	return fmt.Sprintf("%s unpacks to more than the limit of %s; --max-bytes raises it, if the file can be trusted", e.what, byteSize(e.max))
}

// byteSize prints a number of bytes for people.
func byteSize(n int64) string {
	switch {
	case n >= 1<<30 && n%(1<<30) == 0:
		return fmt.Sprintf("%d GiB", n>>30)
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", n>>20)
	default:
		return fmt.Sprintf("%d bytes", n)
	}
}

// boundedReader passes through at most max bytes in all and then fails with a
// tooLargeError, where io.LimitedReader would feign the end of the data.
type boundedReader struct {
	r    io.Reader
	left int64
	err  *tooLargeError
}

// bounded reads up to the limit of the error.
func bounded(r io.Reader, err tooLargeError) *boundedReader {
	return &boundedReader{r: r, left: err.max, err: &err}
}

func (b *boundedReader) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if b.left <= 0 {
		// Only data beyond the bound is a fault, its end is not.
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
