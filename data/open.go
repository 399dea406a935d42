package data

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/miplc/miplc/internal/diag"
)

// Open reads a set of bags; the ending of the name says the format: .npz, .mat
// (MAT v5), .csv or .csv.gz. The result is valid (see Validate). Errors are
// diagnostics with the path, and for CSV the line.
func Open(path string) (*Dataset, error) { return OpenWith(path, Options{}) }

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
		return nil, unknownFormat(path, "read", ".npz, .mat, .csv and .csv.gz")
	}
	if err != nil {
		return nil, fileError(path, err)
	}
	d.Name = setName(path)
	return d, nil
}

// Save writes the set as .npz, .csv or .csv.gz, by the ending of the name. The
// file is written aside and renamed, so that no half-written set is left.
func (d *Dataset) Save(path string) error {
	if err := d.Validate(path); err != nil {
		return err
	}
	switch format(path) {
	case ".npz":
		return writeAside(path, func(f *os.File) error { return writeNPZ(f, d) })
	case ".csv":
		return writeAside(path, func(f *os.File) error { return writeCSV(f, d) })
	case ".csv.gz":
		return writeAside(path, func(f *os.File) error { return writeCSVGzip(f, d) })
	}
	return unknownFormat(path, "written", ".npz, .csv and .csv.gz")
}

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
	return diag.Errorf(diag.Pos{File: path}, "files ending in %q are not %s; known are %s", format(path), verb, known)
}

// fileError gives an error of the system the shape of the others.
func fileError(path string, err error) error {
	var d diag.Diagnostic
	var l diag.List
	var p *fs.PathError
	var syntax *csv.ParseError
	switch {
	case errors.As(err, &d), errors.As(err, &l):
		return err
	case errors.As(err, &syntax):
		return SyntaxError(path, 0, syntax)
	case errors.Is(err, fs.ErrNotExist):
		return diag.Errorf(diag.Pos{File: path}, "there is no such file")
	case errors.As(err, &p):
		return diag.Errorf(diag.Pos{File: path}, "%v", p.Err)
	}
	return diag.Errorf(diag.Pos{File: path}, "%v", err)
}

// writeAside lets write fill a file beside path and gives it its name when
// all went well.
func writeAside(path string, write func(*os.File) error) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
		}
	}()
	if err = write(f); err != nil {
		return fmt.Errorf("cannot write %s: %w", path, err)
	}
	if err = f.Chmod(0o644); err != nil {
		return fmt.Errorf("cannot write %s: %w", path, err)
	}
	if err = f.Sync(); err != nil {
		return fmt.Errorf("cannot write %s: %w", path, err)
	}
	if err = f.Close(); err != nil {
		return fmt.Errorf("cannot write %s: %w", path, err)
	}
	if err = os.Rename(f.Name(), path); err != nil {
		return fmt.Errorf("cannot write %s: %w", path, err)
	}
	return nil
}
