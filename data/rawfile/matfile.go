// Reader of MATLAB 5 files (save -v6 and -v7): numeric, logical and cell arrays, of
// either byte order, compressed or not. Files may be malicious, so no length in them is trusted
// before the data are read.
//
// The format is described in "MAT-File Format", The MathWorks, chapter 1.

package rawfile

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/miplc/miplc/internal/fileio"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/internal/resources"
)

// MATClass is the MATLAB class of an array.
type MATClass uint8

// Classes of the format.
const (
	MATCell MATClass = iota + 1
	MATStruct
	MATObject
	MATChar
	MATSparse
	MATDouble
	MATSingle
	MATInt8
	MATUint8
	MATInt16
	MATUint16
	MATInt32
	MATUint32
	MATInt64
	MATUint64
	MATFunction
	MATOpaque
)

var classNames = [...]string{"", "cell", "struct", "object", "char", "sparse", "double", "single",
	"int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "function handle", "opaque object"}

// String returns MATLAB's name of the class.
func (c MATClass) String() string {
	if c == 0 || int(c) >= len(classNames) {
		return fmt.Sprintf("class %d", uint8(c))
	}
	return classNames[c]
}

// MATArray is one variable or one element of a cell array. Its contents are in Numbers or Cells,
// column-major; both are nil for complex numbers and for unsupported classes (text, struct, object,
// sparse, function handle).
type MATArray struct {
	Name    string
	Class   MATClass
	Dims    []int       // at least two sizes
	Numbers []float64   // numeric classes; int64 beyond 2^53 is rounded
	Cells   []*MATArray // cell
	Complex bool
}

// Len returns the number of elements, the product of the sizes.
func (a *MATArray) Len() int { return ndarray.Size(a.Dims) }

// Size returns the sizes, e.g. "350x1".
func (a *MATArray) Size() string {
	parts := make([]string, len(a.Dims))
	for i, e := range a.Dims {
		parts[i] = fmt.Sprint(e)
	}
	return strings.Join(parts, "x")
}

const headerSize = 128

// ReadMAT reads all variables of a MAT v5 file, in its order. limit is the error for larger contents. Errors name the
// variable and what to do.
func ReadMAT(r io.Reader, limit *resources.MemoryError) ([]*MATArray, error) {
	r = bufio.NewReaderSize(r, 1<<16)
	order, err := readHeader(r)
	if err != nil {
		return nil, err
	}
	f := &matReader{order: order, left: int64(limit.Budget.Bytes), tooLarge: limit}
	seen := map[string]bool{}
	var out []*MATArray
	for {
		e, err := f.element(r)
		if err == io.EOF {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("after %d variables: %w", len(out), fileio.CutShort(err))
		}
		f.variable = ""
		a, err := f.topLevel(e)
		switch {
		case err != nil && f.variable == "":
			return nil, fmt.Errorf("variable number %d: %w", len(out)+1, err)
		case err != nil:
			return nil, fmt.Errorf("variable %q: %w", f.variable, err)
		case seen[a.Name]:
			return nil, fmt.Errorf("the variable %q is in the file twice", a.Name)
		}
		seen[a.Name] = true
		out = append(out, a)
	}
}

// topLevel reads the array in an element of the file and decompresses it if necessary.
func (f *matReader) topLevel(e *element) (*MATArray, error) {
	if e.typ != miCOMPRESSED || e.small {
		return f.matrix(e, 0)
	}
	z, err := zlib.NewReader(e)
	if err != nil {
		return nil, fmt.Errorf("the packed data are damaged: %w", fileio.CutShort(err))
	}
	inner, err := f.element(z)
	if err != nil {
		return nil, damaged(err)
	}
	a, err := f.matrix(inner, 0)
	if err != nil {
		return nil, err
	}
	// Reading to the end verifies the checksum of the compressed data.
	if n, err := io.CopyN(io.Discard, z, 1); n > 0 {
		return nil, errors.New("more packed data than its size says")
	} else if err != io.EOF {
		return nil, damaged(err)
	}
	_, err = io.Copy(io.Discard, e)
	return a, err
}

// readHeader checks the first 128 bytes and returns the byte order.
func readHeader(r io.Reader) (binary.ByteOrder, error) {
	var head [headerSize]byte
	n, err := io.ReadFull(r, head[:])
	if bytes.HasPrefix(head[:n], []byte("\x89HDF\r\n\x1a\n")) {
		return nil, errHDF5
	}
	if n < 4 {
		return nil, errors.New("not a MATLAB file: it is shorter than a header")
	}
	if head[0] == 0 || head[1] == 0 || head[2] == 0 || head[3] == 0 {
		return nil, errors.New("not a MATLAB 5 file; it may be of MATLAB 4: load it and save it with save(..., '-v7')")
	}
	if err != nil {
		return nil, errors.New("the header is cut short, or this is not a MATLAB file")
	}
	var order binary.ByteOrder
	switch string(head[126:128]) {
	case "IM":
		order = binary.LittleEndian
	case "MI":
		order = binary.BigEndian
	default:
		return nil, errors.New("not a MATLAB 5 file: the header does not end in the mark of its byte order")
	}
	switch version := order.Uint16(head[124:126]); version {
	case 0x0100:
		return order, nil
	case 0x0200:
		return nil, errHDF5
	default:
		return nil, fmt.Errorf("MATLAB file version %#04x is not known", version)
	}
}

var errHDF5 = errors.New("a MATLAB 7.3 file (HDF5) is not read: load it and save it with save(..., '-v7')")
