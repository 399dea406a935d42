// The table of file formats: what miplc reads and writes, and the lists of endings in messages and help texts.

package bagfile

import (
	"io"
	"os"
	"slices"
	"strings"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/data/rawfile"
)

// format is the format of the files with an ending.
type format struct {
	ending string
	// read reads a dataset; nil: the format has only the instances of one bag.
	read func(f *os.File, size int64, path string, o Reading) (*data.Dataset, error)
	// write writes a dataset; nil: not supported.
	write func(io.Writer, *data.Dataset) error
	// open opens a file with the instances of one bag, which stay on disk; nil: not supported.
	open    func(*arrayFile) error
	packed  bool // the file may be compressed
	columns bool // Columns applies, because the file names its columns
	labels  bool // Labels applies
}

// formats returns the table of formats. A function breaks the cycle of a table of files, which contains
// files of other formats.
func formats() []format {
	npz := func(f *os.File, size int64, path string, o Reading) (*data.Dataset, error) {
		return decodeNPZ(f, size, path, o)
	}
	mat := func(f *os.File, _ int64, path string, o Reading) (*data.Dataset, error) { return decodeMAT(f, path, o) }
	csv := func(f *os.File, _ int64, path string, o Reading) (*data.Dataset, error) { return decodeCSV(f, path, o) }
	return []format{
		{ending: ".npz", read: npz, write: writeNPZ, open: (*arrayFile).openNPZ, packed: true, labels: true},
		{ending: ".mat", read: mat, packed: true},
		{ending: ".csv", read: csv, write: writeCSV, columns: true, labels: true},
		{ending: ".csv.gz", read: csv, write: writeCSVGzip, packed: true, columns: true, labels: true},
		{ending: ".h5", open: (*arrayFile).openHDF5},
		{ending: ".hdf5", open: (*arrayFile).openHDF5},
		{ending: ".safetensors", open: (*arrayFile).openSafetensors},
		{ending: ".npy", open: (*arrayFile).openNPY},
	}
}

// formatOf returns the format of a file, by its ending. All functions of an unknown format are nil.
func formatOf(path string) format {
	list := formats()
	if i := slices.IndexFunc(list, func(f format) bool { return f.ending == rawfile.Extension(path) }); i >= 0 {
		return list[i]
	}
	return format{}
}

// Endings are the endings of file names, such as .npz.
type Endings []string

func endings(of func(format) bool) (list Endings) {
	for _, f := range formats() {
		if of(f) {
			list = append(list, f.ending)
		}
	}
	return list
}

// Readable returns the endings of datasets that Open reads.
func Readable() Endings { return endings(func(f format) bool { return f.read != nil }) }

// Writable returns the endings of datasets that Write writes.
func Writable() Endings { return endings(func(f format) bool { return f.write != nil }) }

// WithColumns returns the endings of datasets whose columns have names, to which Reading.Columns applies.
func WithColumns() Endings { return endings(func(f format) bool { return f.columns }) }

// WithLabels returns the endings of datasets to which Reading.Labels applies.
func WithLabels() Endings { return endings(func(f format) bool { return f.labels }) }

// Match reports whether a file name has one of the endings.
func (e Endings) Match(path string) bool { return slices.Contains(e, rawfile.Extension(path)) }

// List returns the endings separated by commas.
func (e Endings) List() string { return strings.Join(e, ", ") }

// And returns the endings as an enumeration, such as ".npz, .csv and .csv.gz".
func (e Endings) And() string { return e.join(" and ") }

// Or returns the endings as alternatives, such as ".npz, .csv or .csv.gz".
func (e Endings) Or() string { return e.join(" or ") }

func (e Endings) join(word string) string {
	last := len(e) - 1
	return strings.Join(e[:last], ", ") + word + e[last]
}
