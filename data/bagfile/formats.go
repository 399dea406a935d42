// The functions that read and write each format of the table in package formats.

package bagfile

import (
	"io"
	"os"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/data/formats"
)

// codec reads and writes the files of a format.
type codec struct {
	// read reads a dataset; nil: the format has only the instances of one bag.
	read func(f *os.File, size int64, path string, o Reading) (*data.Dataset, error)
	// write writes a dataset; nil: not supported.
	write func(io.Writer, *data.Dataset) error
	// open opens a file with the instances of one bag, which stay on disk; nil: not supported.
	open func(*arrayFile) error
}

// codecOf returns the functions for a file, by its ending; all are nil if the format is unknown. A function breaks the
// cycle of a table of files, which contains files of other formats.
func codecOf(path string) codec {
	npz := func(f *os.File, size int64, path string, o Reading) (*data.Dataset, error) {
		return decodeNPZ(f, size, path, o)
	}
	csv := func(f *os.File, _ int64, path string, o Reading) (*data.Dataset, error) { return decodeCSV(f, path, o) }
	mat := func(f *os.File, _ int64, path string, o Reading) (*data.Dataset, error) { return decodeMAT(f, path, o) }
	switch formats.Extension(path) {
	case ".npz":
		return codec{npz, writeNPZ, (*arrayFile).openNPZ}
	case ".mat":
		return codec{read: mat}
	case ".csv":
		return codec{read: csv, write: writeCSV}
	case ".csv.gz":
		return codec{read: csv, write: writeCSVGzip}
	case ".h5", ".hdf5":
		return codec{open: (*arrayFile).openHDF5}
	case ".safetensors":
		return codec{open: (*arrayFile).openSafetensors}
	case ".npy":
		return codec{open: (*arrayFile).openNPY}
	}
	return codec{}
}
