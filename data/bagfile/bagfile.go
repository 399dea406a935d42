package bagfile

import (
	"io"
	"path/filepath"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/data/rawfile"
	"github.com/miplc/miplc/internal/infile"
	"github.com/miplc/miplc/internal/outfile"
)

// Open reads a set of bags; the ending of the name says the format: .npz, .mat
// (MAT v5), .csv or .csv.gz. The result is valid (see Validate). Errors are
// diagnostics with the path, and for CSV the line.
func Open(path string) (*data.Dataset, error) { return OpenWith(path, Options{}) }

// Options are the settings of reading a dataset.
type Options struct {
	MaxBytes rawfile.Limit // maximum uncompressed size
	Columns  Columns       // of CSV files
	// KnownLabels makes the true label the only candidate of each bag: the file needs no
	// candidates, and every bag needs a label.
	KnownLabels bool
}

// forPacked returns the settings for a compressed file of size bytes.
func (o Options) forPacked(size int64) Options {
	o.MaxBytes = o.MaxBytes.ForPacked(size)
	return o
}

// Folder is where data files are looked up besides the working directory, and what
// reading one of them may cost.
type Folder struct {
	Dir string // may be empty
	Options
}

// OpenWith is Open with other limits.
func OpenWith(path string, o Options) (*data.Dataset, error) {
	var d *data.Dataset
	var err error
	switch rawfile.Extension(path) {
	case ".npz":
		d, err = readNPZ(path, o)
	case ".csv", ".csv.gz":
		d, err = readCSV(path, o)
	case ".mat":
		d, err = readMAT(path, o)
	default:
		f, _, err := infile.Open(path)
		if err != nil {
			return nil, rawfile.FileError(path, err)
		}
		f.Close()
		return nil, rawfile.UnknownFormat(path, "read", ".npz, .mat, .csv and .csv.gz")
	}
	if err != nil {
		return nil, rawfile.FileError(path, err)
	}
	d.Name = setName(path)
	return d, checkFeatures(d, path, o.Columns.Want)
}

// Save writes the set to a file, in place of what is there, see Write. No
// half-written set is left.
func Save(path string, d *data.Dataset) error {
	f, err := outfile.Create(path, outfile.Options{Force: true})
	if err != nil {
		return err
	}
	defer f.Discard()
	if err := Write(f, d, path); err != nil {
		return err
	}
	return f.Commit()
}

// Write writes the set as .npz, .csv or .csv.gz, by the ending of the name.
func Write(w io.Writer, d *data.Dataset, name string) error {
	if err := CheckWritable(name); err != nil {
		return err
	}
	if err := d.Validate(name); err != nil {
		return err
	}
	return writers[rawfile.Extension(name)](w, d)
}

// CheckWritable reports a name whose ending says no format that Write knows.
func CheckWritable(name string) error {
	if writers[rawfile.Extension(name)] == nil {
		return rawfile.UnknownFormat(name, "written", ".npz, .csv and .csv.gz")
	}
	return nil
}

var writers = map[string]func(io.Writer, *data.Dataset) error{".npz": writeNPZ, ".csv": writeCSV, ".csv.gz": writeCSVGzip}

func setName(path string) string {
	name := filepath.Base(path)
	return name[:len(name)-len(rawfile.Extension(path))]
}
