// Datasets: shape, type and layout.

package hdf5

import (
	"errors"
	"fmt"

	"github.com/miplc/miplc/internal/ndarray"
)

// Dataset is an array of numbers in a file. Its first axis counts rows.
type Dataset struct {
	// Shape is that of the array without leading axes of extent 1 if it has more than two
	// axes: [1, n, d] becomes [n, d].
	Shape []int
	Type  ndarray.Encoding

	file       *File
	attributes [][]byte // messages of the header
	compact    []byte   // the data, if they are stored in the header
	address    uint64   // of contiguous data
	chunks     *chunks
}

// ErrGroup is the error of Dataset for the path of a group.
var ErrGroup = errors.New("is a group, not a dataset")

const (
	maxExtent = 1 << 40
	maxValues = 1 << 44
)

// Dataset opens the array at a path. The error wraps ErrNotFound if there is none.
func (f *File) Dataset(path string) (*Dataset, error) {
	address, err := f.find(path)
	if err != nil {
		return nil, err
	}
	d, err := f.open(address)
	if err != nil {
		return nil, fmt.Errorf("%q: %w", path, err)
	}
	return d, nil
}

func (f *File) open(address uint64) (*Dataset, error) {
	s := f.newScan()
	messages, err := s.header(address)
	if err != nil {
		return nil, err
	}
	r := &datasetReader{scan: s, Dataset: &Dataset{file: f}}
	for _, m := range messages {
		if err := r.message(m); err != nil {
			return nil, err
		}
	}
	switch {
	case r.layout == nil:
		return nil, ErrGroup
	case r.Shape == nil || !r.Type.Valid():
		return nil, errDamaged
	}
	if err := r.findData(); err != nil {
		return nil, err
	}
	for len(r.Shape) > 2 && r.Shape[0] == 1 {
		r.Shape = r.Shape[1:]
		if r.chunks != nil {
			r.chunks.shape = r.chunks.shape[1:] // the array is at the start of the chunk
		}
	}
	return r.Dataset, nil
}

// datasetReader reads the object header of a dataset.
type datasetReader struct {
	*scan
	*Dataset
	layout  []byte
	filters []uint16
}

func (r *datasetReader) message(m message) (err error) {
	switch kind := m.kind; {
	case m.shared && (kind == msgDataspace || kind == msgDatatype || kind == msgLayout || kind == msgFilters):
		return errors.New("refers to a committed datatype, which is not supported")
	case kind == msgDataspace:
		err = r.dataspace(m.data)
	case kind == msgDatatype:
		r.Type, err = readType(m.data)
	case kind == msgLayout:
		r.layout = m.data
	case kind == msgFilters:
		r.filters, err = readFilters(m.data)
	case kind == msgAttribute && !m.shared:
		r.attributes = append(r.attributes, m.data)
	case kind == msgExternal:
		return errors.New("stores its data in another file, which is not supported")
	}
	return err
}

// dataspace reads the extents of the array.
func (r *datasetReader) dataspace(b []byte) error {
	f := &fields{rest: b}
	version, rank := f.number(1), f.number(1)
	if f.next(2); version == 1 {
		f.next(4)
	}
	switch {
	case version != 1 && version != 2 || f.short || rank > 8:
		return errDamaged
	case rank == 0:
		return errors.New("is a single value; an array of instances is needed")
	}
	r.Shape = nil
	values := uint64(1)
	for range rank {
		extent := f.number(8)
		if f.short || extent > maxExtent || extent > 0 && values > maxValues/extent {
			return errDamaged
		}
		values *= max(extent, 1)
		r.Shape = append(r.Shape, int(extent))
	}
	return nil
}

// readType reads a datatype: integers, booleans, and the floats of IEEE 754 and bfloat16.
func readType(b []byte) (ndarray.Encoding, error) {
	const integer, float, enum = 0, 1, 8
	var t ndarray.Encoding
	if len(b) < 8 {
		return t, errDamaged
	}
	if b[0]&15 == enum && le.Uint16(b[1:]) == 2 && le.Uint32(b[4:]) == 1 {
		return readType(b[8:]) // booleans, as h5py writes them: FALSE and TRUE of one byte
	}
	t.Swap, t.Size = b[1]&1 != 0, int(min(le.Uint32(b[4:]), 1<<20))
	switch class := b[0] & 15; class {
	case integer:
		if t.Kind = ndarray.Uint; b[1]&8 != 0 {
			t.Kind = ndarray.Int
		}
	case float:
		if len(b) < 20 {
			return t, errDamaged
		}
		t.Kind = ndarray.Float
		switch exponent := b[13]; {
		case t.Size == 2 && exponent == 8:
			t.Kind = ndarray.BFloat
		case exponent != map[int]byte{2: 5, 4: 8, 8: 11}[t.Size]:
			return t, fmt.Errorf("floats of %d bytes with an exponent of %d bits are not supported", t.Size, exponent)
		}
	default:
		names := map[byte]string{2: "times", 3: "text", 4: "bit fields", 5: "opaque values", 6: "compound values",
			7: "references", 8: "enumerated values", 9: "text or lists", 10: "arrays"}
		return t, fmt.Errorf("contains %s; numbers are needed", names[class])
	}
	if !t.Valid() {
		return t, fmt.Errorf("numbers of %d bytes are not supported", t.Size)
	}
	return t, nil
}

// findData finds the data by the layout message.
func (r *datasetReader) findData() error {
	const compact, contiguous, chunked, virtual = 0, 1, 2, 3
	b := r.layout
	if len(b) < 2 {
		return errDamaged
	}
	if b[0] < 3 || b[0] > 5 {
		return fmt.Errorf("version %d of the HDF5 layout is not supported; "+rewrite, b[0])
	}
	bytes := uint64(ndarray.Size(r.Shape)) * uint64(r.Type.Size)
	switch b[1] {
	case compact:
		if len(b) < 4 || uint64(le.Uint16(b[2:])) < bytes || uint64(len(b)-4) < bytes {
			return errDamaged
		}
		r.compact = b[4 : 4+bytes]
	case contiguous:
		if len(b) < 10 {
			return errDamaged
		}
		r.address = le.Uint64(b[2:])
		if bytes == 0 {
			break
		}
		if r.address == undefined {
			return errors.New("no data were written to it")
		}
		at := r.address + r.file.base
		if at < r.address || at > r.file.size || bytes > r.file.size-at {
			return errDamaged
		}
	case chunked:
		return r.placeChunks(b)
	case virtual:
		return errors.New("is a virtual dataset, made of parts of others, which is not supported; " + rewrite)
	default:
		return fmt.Errorf("class %d of the HDF5 layout is not supported", b[1])
	}
	return nil
}

// Rows is the extent of the first axis.
func (d *Dataset) Rows() int { return d.Shape[0] }

// Piece is the number of rows that are stored together: those of a chunk, or 1.
func (d *Dataset) Piece() int {
	if d.chunks == nil {
		return 1
	}
	return d.chunks.shape[0]
}

// Width is the number of values in a row.
func (d *Dataset) Width() int { return ndarray.Size(d.Shape[1:]) }
