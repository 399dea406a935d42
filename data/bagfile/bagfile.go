// Package bagfile reads and writes datasets in the formats of its table (formats.go), and tables of files
// with the instances of each bag.
package bagfile

import (
	"archive/zip"
	"io"
	"path/filepath"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/data/formats"
	"github.com/miplc/miplc/data/rawfile"
	"github.com/miplc/miplc/internal/fileio"
)

// Open reads a dataset. The ending determines the format, see Readable. The result is valid (see
// data.Dataset.Validate). Errors are diagnostics with the path, and for CSV the line.
func Open(path string) (*data.Dataset, error) { return OpenWith(path, Reading{}) }

// Reading says how to read a dataset.
type Reading struct {
	MaxBytes rawfile.Limit // maximum uncompressed size
	Columns  Columns
	Labels   Labels
	Form     Form // of the advice in messages
	// NoCandidates ignores the candidates of data for a model that was trained on KnownLabels. Unlike
	// in such training data, labels are optional.
	NoCandidates bool
	// DetectLabels: the labels are those that the file has, known ones, candidates or none, unless Labels names a kind
	// that the file can have.
	DetectLabels bool
	// Files opens the files of a table of bags; nil: they contain arrays.
	Files Files
	// Copies maps names of files in a table to the paths of copies, for example in the folder of an
	// experiment, see FilesOf. A name without a copy is looked up as a path.
	Copies map[string]string
}

// Validate checks a dataset that was read from path.
func (o Reading) Validate(d *data.Dataset, path string) error {
	d.Noisy, d.Known = o.Labels == NoisyLabels, o.Labels == KnownLabels
	d.WarnOfAlike(path)
	if o.Columns.ModelClasses != nil || o.Labels == noLabels {
		return d.ValidateToPredict(path)
	}
	return d.Validate(path)
}

// Labels is the kind of the labels of the bags, as data.labels of a spec names it. Empty: bags have a true label, which
// may be unknown, and candidates.
type Labels string

const (
	// KnownLabels: the true label is the only candidate of a bag. The file needs no candidates,
	// and every bag needs a label.
	KnownLabels Labels = "known"
	// MultiLabels: bags have any number of true labels and no candidates.
	MultiLabels Labels = "multi"
	// NoisyLabels: bags have candidates, which may lack the true label.
	NoisyLabels Labels = "noisy"
	// noLabels: Reading.DetectLabels found none.
	noLabels Labels = "none"
)

// sets reports whether bags have candidate sets.
func (l Labels) sets() bool { return l != KnownLabels && l != MultiLabels && l != noLabels }

// word returns the word for n labels of a list in messages.
func (l Labels) word(n int) string {
	word := "candidate"
	if l == MultiLabels {
		word = "label"
	}
	if n > 1 {
		word += "s"
	}
	return word
}

// Files opens the files of a table of bags that contain no arrays.
type Files interface {
	// Open opens the next file of a bag, which is the bag of the file before or the next one, from 0.
	Open(path string, bag int) error
	// Attach is called after the last file. It sets Shape, Store, Offsets and Source of a dataset
	// whose bags have the instances of their files, in order.
	Attach(d *data.Dataset) error
}

// Folder is a folder in which data files are searched in addition to the working directory, and the
// settings for reading them.
type Folder struct {
	Dir string // may be empty
	Reading
}

// OpenWith is Open with settings.
func OpenWith(path string, o Reading) (*data.Dataset, error) {
	f, info, err := fileio.Open(path)
	if err != nil {
		return nil, rawfile.FileError(path, err)
	}
	defer f.Close()
	codec := codecOf(path)
	if codec.read == nil && codec.open != nil && o.DetectLabels {
		codec.read = decodeArrays
	}
	if codec.read == nil {
		d := formats.UnknownFormat(path, "read", formats.Readable().And())
		if codec.open != nil {
			d = d.WithNote("a file of this format has the features of one bag; name it in a CSV file with the columns bag, " +
				"label, candidates, file")
		}
		return nil, d
	}
	if formats.Of(path).Packed {
		o.MaxBytes = o.MaxBytes.ForPacked(info.Size())
	}
	d, err := codec.read(f, info.Size(), path, o)
	if err != nil {
		return nil, rawfile.FileError(path, err)
	}
	d.Name = setName(path)
	return d, checkFeatures(d, path, o.Columns.ModelFeatures)
}

// Save writes a dataset to a file, see Write. It replaces an existing file only after everything
// has been written.
func Save(path string, d *data.Dataset) error {
	f, err := fileio.Create(path, fileio.WriteOptions{Force: true})
	if err != nil {
		return err
	}
	return f.Fill(func(w io.Writer) error { return Write(w, d, path) })
}

// Write writes a dataset in the format of the ending of name, see Writable. A dataset without classes is written
// without candidates, for predictions.
func Write(w io.Writer, d *data.Dataset, name string) error {
	if err := CheckWritable(name); err != nil {
		return err
	}
	validate := d.Validate
	if d.Classes == 0 {
		validate = d.ValidateToPredict
	}
	if err := validate(name); err != nil {
		return err
	}
	return codecOf(name).write(w, d)
}

// WriteStored writes a valid dataset as an .npz file without compression, for a program that reads it at once.
func WriteStored(w io.Writer, d *data.Dataset) error {
	return writeArrays(&npzWriter{zip: zip.NewWriter(w), method: zip.Store}, d)
}

// CheckWritable returns an error if Write does not support the extension of name.
func CheckWritable(name string) error {
	if !formats.Writable().Match(name) {
		return formats.UnknownFormat(name, "written", formats.Writable().And())
	}
	return nil
}

func setName(path string) string {
	name := filepath.Base(path)
	return name[:len(name)-len(formats.Extension(path))]
}
