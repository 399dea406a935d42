package data

import (
	"bufio"
	"compress/gzip"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/infile"
	"github.com/miplc/miplc/internal/outfile"
)

// Open reads a set of bags; the ending of the name says the format: .npz, .mat
// (MAT v5), .csv or .csv.gz. The result is valid (see Validate). Errors are
// diagnostics with the path, and for CSV the line.
func Open(path string) (*Dataset, error) { return OpenWith(path, Options{}) }

// Folder is where data files are looked up besides the working directory, and what
// reading one of them may cost.
type Folder struct {
	Dir string // may be empty
	Options
}

// OpenWith is Open with other limits.
func OpenWith(path string, o Options) (*Dataset, error) {
	var d *Dataset
	var err error
	switch format(path) {
	case ".npz":
		d, err = readNPZ(path, o)
	case ".csv", ".csv.gz":
		d, err = readCSV(path, o)
	case ".mat":
		d, err = readMAT(path, o)
	default:
		f, _, err := infile.Open(path)
		if err != nil {
			return nil, FileError(path, err)
		}
		f.Close()
		return nil, unknownFormat(path, "read", ".npz, .mat, .csv and .csv.gz")
	}
	if err != nil {
		return nil, FileError(path, err)
	}
	d.Name = setName(path)
	return d, d.checkFeatures(path, o.Columns.Want)
}

// Save writes the set to a file, in place of what is there, see Write. No
// half-written set is left.
func (d *Dataset) Save(path string) error {
	f, err := outfile.Create(path, outfile.Options{Force: true})
	if err != nil {
		return err
	}
	defer f.Discard()
	if err := d.Write(f, path); err != nil {
		return err
	}
	return f.Commit()
}

// Write writes the set as .npz, .csv or .csv.gz, by the ending of the name.
func (d *Dataset) Write(w io.Writer, name string) error {
	if err := CheckWritable(name); err != nil {
		return err
	}
	if err := d.Validate(name); err != nil {
		return err
	}
	return writers[format(name)](w, d)
}

// CheckWritable reports a name whose ending says no format that Write knows.
func CheckWritable(name string) error {
	if writers[format(name)] == nil {
		return unknownFormat(name, "written", ".npz, .csv and .csv.gz")
	}
	return nil
}

var writers = map[string]func(io.Writer, *Dataset) error{".npz": writeNPZ, ".csv": writeCSV, ".csv.gz": writeCSVGzip}

// format is the ending of a path that says how to read it, in lower case.
func format(path string) string {
	name := strings.ToLower(filepath.Base(path))
	if strings.HasSuffix(name, ".csv.gz") {
		return ".csv.gz"
	}
	return filepath.Ext(name)
}

func setName(path string) string {
	name := filepath.Base(path)
	return name[:len(name)-len(format(path))]
}

func unknownFormat(path, verb, known string) error {
	files := fmt.Sprintf("files ending in %q", format(path))
	if format(path) == "" {
		files = "files without an ending"
	}
	return diag.Errorf(diag.Pos{File: path}, "%s are not %s; known are %s", files, verb, known)
}

// unpack reads through gzip where the name of a file says that it is packed.
func unpack(r io.Reader, path string) (io.Reader, error) {
	if !strings.HasSuffix(strings.ToLower(path), ".gz") {
		return r, nil
	}
	z, err := gzip.NewReader(bufio.NewReader(r))
	if err != nil {
		return nil, diag.Errorf(diag.Pos{File: path}, "not a gzip file, though its name says so: %v", infile.CutShort(err))
	}
	return z, nil
}

// FileError gives an error of the system, or of CSV, the shape of the others.
func FileError(path string, err error) error {
	var d diag.Diagnostic
	var l diag.List
	var p *fs.PathError
	var syntax *csv.ParseError
	switch {
	case errors.As(err, &d), errors.As(err, &l):
		return err
	case errors.As(err, &syntax):
		return CSVError(path, 0, err)
	case errors.Is(err, fs.ErrNotExist):
		return diag.Errorf(diag.Pos{File: path}, "there is no such file")
	case errors.As(err, &p):
		return diag.Errorf(diag.Pos{File: path}, "%v", p.Err)
	}
	return diag.Errorf(diag.Pos{File: path}, "%v", err)
}
