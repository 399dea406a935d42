// Arrays of one bag in a file of their own: HDF5, npy, npz, safetensors.

package bagfile

import (
	"archive/zip"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/miplc/miplc/data/formats"
	"github.com/miplc/miplc/data/hdf5"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/fileio"
	"github.com/miplc/miplc/internal/ndarray"
)

// array is an array of numbers in a file. Its first axis counts instances.
type array struct {
	shape []int
	rows  interface {
		// ReadRows reads rows into to until it is full, starting with row number from.
		ReadRows(to []float32, from int) error
	}
	piece int // rows that can only be read together, as those of a compressed chunk; 0: one
	// number is the type of the numbers in the file. rows is a byteRows if it is valid.
	number ndarray.Encoding
}

// byteRows reads rows without converting their numbers.
type byteRows interface {
	ReadBytes(to []byte, from int) error
}

// arrayFile is an open file with arrays.
type arrayFile struct {
	r    io.ReaderAt
	size int64
	file *os.File
	info fs.FileInfo
	// find returns an array by its name, without leading axes of extent 1 if it has more than two
	// axes, because TRIDENT writes [1, n, d]. The error is errNoArray if the file does not contain it.
	find func(name string) (array, error)
	// names returns the arrays at the top level of the file. The name of the only array of a
	// file without names is empty.
	names func() ([]string, error)
	last  struct { // the array that was read last
		array
		name string
	}
}

var errNoArray = errors.New("no such array")

// openArrays opens a file with arrays of numbers.
func openArrays(path string) (*arrayFile, error) {
	if formats.Extension(path) == ".parquet" {
		return nil, fmt.Errorf("files in the format Parquet are not supported; %s", formats.ConvertParquet(path, ".npz"))
	}
	open := codecOf(path).open
	if open == nil {
		return nil, fmt.Errorf("files with this extension are not supported; supported are %s", formats.OneBag().List())
	}
	file, info, err := fileio.Open(path)
	if err != nil {
		return nil, err
	}
	f := &arrayFile{r: file, size: info.Size(), file: file, info: info}
	if err := open(f); err != nil {
		file.Close()
		return nil, err
	}
	return f, nil
}

// featuresName is the usual name of the array with the features of a bag.
const featuresName = "features"

// arrayOf returns the array of a bag and its name: the array with that name, or the array "features"
// in the group with that name. If name is empty it is the array "features", the array or group
// named like the bag, or the only array, unless it is named like coordinates, labels or indices.
func (f *arrayFile) arrayOf(name, bag string) (array, string, error) {
	tries := []string{name, name + "/" + featuresName}
	if name == "" {
		tries = []string{featuresName, bag, bag + "/" + featuresName}
	}
	for _, try := range tries {
		if a, err := f.open(try); !errors.Is(err, errNoArray) {
			return a, try, err
		}
	}
	names, err := f.names()
	if err != nil {
		return array{}, "", err
	}
	if name == "" && len(names) == 1 && !suspectArray(names[0]) {
		if a, err := f.open(names[0]); !errors.Is(err, errNoArray) {
			return a, names[0], err
		}
	}
	d := diag.Errorf(diag.Pos{}, "the file has no array %q; it has %s", cmp.Or(name, featuresName), diag.Words(names))
	switch d.Suggestion = diag.Suggest(cmp.Or(name, bag), names); {
	case name == "" && slices.Equal(names, []string{coordsName}):
		d = d.WithNote("the file has only the coordinates of the instances; CLAM and TRIDENT write the features into " +
			"files of another folder")
	case d.Suggestion == "":
		d = d.WithNote("to read an array with another name, write its name after # in the table: FILE#NAME")
	}
	return array{}, "", d
}

// open finds an array and checks that it is [instances, ...].
func (f *arrayFile) open(name string) (array, error) {
	a, err := f.find(name)
	if err != nil {
		return a, err
	}
	if len(a.shape) < 2 {
		return a, fmt.Errorf("the array has the shape %v; [instances, features] is needed", a.shape)
	}
	if n, ok := ndarray.SizeWithin(a.shape, math.MaxInt/8); !ok || n == 0 {
		return a, fmt.Errorf("the array has the shape %v; a bag needs at least one instance and one feature", a.shape)
	}
	return a, nil
}

// openHDF5 opens an HDF5 file.
func (f *arrayFile) openHDF5() error {
	h, err := hdf5.Open(f.r, f.size)
	if err != nil {
		return err
	}
	f.find = func(name string) (array, error) {
		d, err := h.Dataset(name)
		if errors.Is(err, hdf5.ErrNotFound) || errors.Is(err, hdf5.ErrGroup) {
			return array{}, errNoArray
		}
		if err != nil {
			return array{}, err
		}
		return array{shape: d.Shape, rows: d, piece: d.Piece(), number: d.Type}, nil
	}
	f.names = func() ([]string, error) { return h.Names("") }
	return nil
}

// plainRows is an uncompressed row-major array.
type plainRows struct {
	r      io.ReaderAt
	at     int64 // of the first row
	width  int   // values of a row
	number ndarray.Encoding
}

func (p *plainRows) ReadRows(to []float32, from int) error {
	const block = 1 << 20
	size := p.number.Size
	buffer := make([]byte, min(len(to)*size, block))
	at := p.at + int64(from)*int64(p.width*size)
	for len(to) > 0 {
		n := min(len(to), len(buffer)/size)
		if read, err := p.r.ReadAt(buffer[:n*size], at); read < n*size {
			return fileio.CutShort(err)
		}
		p.number.Floats(to[:n], buffer)
		to, at = to[n:], at+int64(n*size)
	}
	return nil
}

func (p *plainRows) ReadBytes(to []byte, from int) error {
	if read, err := p.r.ReadAt(to, p.at+int64(from)*int64(p.width*p.number.Size)); read < len(to) {
		return fileio.CutShort(err)
	}
	return nil
}

// plain returns the uncompressed array of the file that starts at from. It must end before end.
func (f *arrayFile) plain(shape []int, number ndarray.Encoding, from, end int64) (array, error) {
	count, ok := ndarray.SizeWithin(shape, math.MaxInt/8)
	switch {
	case !number.Valid():
		return array{}, errors.New("the elements of the array are not numbers of 1 to 8 bytes")
	case !ok, from < 0, end > f.size, from > end, int64(count)*int64(number.Size) > end-from:
		return array{}, errors.New("the array is longer than the file; the file is cut short or damaged")
	}
	for len(shape) > 2 && shape[0] == 1 {
		shape = shape[1:]
	}
	width := 1
	if len(shape) > 0 {
		width = count / max(shape[0], 1)
	}
	return array{shape: shape, rows: &plainRows{f.r, from, width, number}, piece: 1, number: number}, nil
}

// safetensorsTypes are the types of safetensors that are numbers.
var safetensorsTypes = map[string]ndarray.Encoding{
	"F16": {Kind: ndarray.Float, Size: 2}, "F32": {Kind: ndarray.Float, Size: 4}, "F64": {Kind: ndarray.Float, Size: 8},
	"BF16": {Kind: ndarray.BFloat, Size: 2},
	"I8":   {Kind: ndarray.Int, Size: 1}, "I16": {Kind: ndarray.Int, Size: 2}, "I32": {Kind: ndarray.Int, Size: 4},
	"I64": {Kind: ndarray.Int, Size: 8},
	"U8":  {Kind: ndarray.Uint, Size: 1}, "U16": {Kind: ndarray.Uint, Size: 2}, "U32": {Kind: ndarray.Uint, Size: 4},
	"U64": {Kind: ndarray.Uint, Size: 8},
}

// openSafetensors reads the header of a safetensors file: its length, then JSON with type, shape
// and offsets of each tensor.
func (f *arrayFile) openSafetensors() error {
	const most = 16 << 20
	var length [8]byte
	if n, err := f.r.ReadAt(length[:], 0); n < len(length) {
		return fileio.CutShort(err)
	}
	n := binary.LittleEndian.Uint64(length[:])
	if n > most || int64(n) > f.size-8 {
		return fmt.Errorf("not a safetensors file: its header of %d bytes is longer than the file or %d bytes", n, most)
	}
	text := make([]byte, n)
	if read, err := f.r.ReadAt(text, 8); read < len(text) {
		return fileio.CutShort(err)
	}
	var entries map[string]json.RawMessage
	if err := json.Unmarshal(text, &entries); err != nil {
		return fmt.Errorf("the header of the safetensors file is damaged: %v", err)
	}
	delete(entries, "__metadata__")
	return f.members(slices.Collect(maps.Keys(entries)), func(name string) (array, error) {
		var e struct {
			Type    string   `json:"dtype"`
			Shape   []int    `json:"shape"`
			Offsets [2]int64 `json:"data_offsets"`
		}
		if err := json.Unmarshal(entries[name], &e); err != nil {
			return array{}, fmt.Errorf("the entry of tensor %q is damaged: %v", name, err)
		}
		number, ok := safetensorsTypes[e.Type]
		if !ok {
			return array{}, fmt.Errorf("tensor %q has the type %q, which is not supported", name, e.Type)
		}
		start := int64(n) + 8
		if e.Offsets[0] < 0 || e.Offsets[1] > math.MaxInt64-start {
			return array{}, fmt.Errorf("tensor %q is outside of the file", name)
		}
		return f.plain(e.Shape, number, start+e.Offsets[0], start+e.Offsets[1])
	})
}

// openNPY opens a file with one NumPy array.
func (f *arrayFile) openNPY() error {
	return f.members([]string{""}, func(string) (array, error) { return f.npy(0, f.size) })
}

// members sets find and names for a file with arrays of the given names, which open opens.
func (f *arrayFile) members(names []string, open func(name string) (array, error)) error {
	slices.Sort(names)
	f.names = func() ([]string, error) { return names, nil }
	f.find = func(name string) (array, error) {
		if _, ok := slices.BinarySearch(names, name); !ok {
			return array{}, errNoArray
		}
		return open(name)
	}
	return nil
}

// npy opens the NumPy array between two offsets.
func (f *arrayFile) npy(from, end int64) (array, error) {
	r := io.NewSectionReader(f.r, from, end-from)
	h, err := readNpyHeader(r)
	if err != nil {
		return array{}, err
	}
	if h.fortran && len(h.shape) > 1 {
		return array{}, errors.New("the array is in Fortran order; save numpy.ascontiguousarray(array)")
	}
	start, err := r.Seek(0, io.SeekCurrent)
	if err != nil {
		return array{}, err
	}
	return f.plain(h.shape, h.number, from+start, end)
}

// openNPZ opens an archive of NumPy arrays without compression.
func (f *arrayFile) openNPZ() error {
	archive, err := zip.NewReader(f.r, f.size)
	if err != nil {
		return fmt.Errorf("not a readable .npz archive: %v", err)
	}
	members := map[string]*zip.File{}
	for _, m := range archive.File {
		members[strings.TrimSuffix(m.Name, ".npy")] = m
	}
	return f.members(slices.Collect(maps.Keys(members)), func(name string) (array, error) {
		m := members[name]
		if m.Method != zip.Store {
			return array{}, fmt.Errorf("array %q is compressed, so that its rows cannot be read one by one; write it with "+
				"numpy.savez", name)
		}
		at, err := m.DataOffset()
		if err != nil {
			return array{}, err
		}
		if m.CompressedSize64 > uint64(f.size) || at > f.size-int64(m.CompressedSize64) {
			return array{}, errors.New("the archive is cut short or damaged")
		}
		return f.npy(at, at+int64(m.CompressedSize64))
	})
}
