// Reading of IDX files.

package generate

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/miplc/miplc/data/rawfile"
	"github.com/miplc/miplc/internal/fileio"
	"github.com/miplc/miplc/internal/ndarray"
)

// idx is an array of bytes in the format of the MNIST files: 28x28 images, [n, 28, 28], or labels,
// [n].
type idx struct {
	Shape []int
	Bytes []uint8 // row-major
}

// maxIDXAxes is the maximum number of axes of an array. Images need 3, colour images 4.
const maxIDXAxes = 8

func readIDX(r io.Reader, limit rawfile.Limit) (*idx, error) {
	var start [4]byte
	if _, err := io.ReadFull(r, start[:]); err != nil {
		return nil, fileio.CutShort(err)
	}
	switch {
	case start[0] == 0x1f && start[1] == 0x8b:
		return nil, errors.New("a compressed file; its name must end in .gz")
	case start[0] != 0 || start[1] != 0:
		return nil, fmt.Errorf("not an IDX file (wrong magic number %x)", start)
	case start[2] != 0x08:
		return nil, fmt.Errorf("elements of type %#02x are not supported; only unsigned bytes (0x08) are", start[2])
	case start[3] == 0 || start[3] > maxIDXAxes:
		return nil, fmt.Errorf("%d axes are not supported; 1 to %d are", start[3], maxIDXAxes)
	}
	x := &idx{Shape: make([]int, start[3])}
	for i := range x.Shape {
		var b [4]byte
		if _, err := io.ReadFull(r, b[:]); err != nil {
			return nil, fileio.CutShort(err)
		}
		x.Shape[i] = int(binary.BigEndian.Uint32(b[:]))
	}
	n, ok := ndarray.SizeWithin(x.Shape, math.MaxInt)
	if !ok || float64(n) > limit.Budget().Bytes {
		return nil, limit.Exceeded("the array")
	}
	var err error
	x.Bytes, err = io.ReadAll(io.LimitReader(r, int64(n))) // grows with the data, because the header may be wrong
	if err == nil && len(x.Bytes) < n {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, fmt.Errorf("the shape %v needs %d bytes: %w", x.Shape, n, fileio.CutShort(err))
	}
	switch more, err := io.ReadFull(r, start[:1]); {
	case more > 0:
		return nil, fmt.Errorf("more data than the shape %v needs", x.Shape)
	case err != io.EOF:
		return nil, fileio.CutShort(err) // the checksum of compressed data is compared at the end
	}
	return x, nil
}
