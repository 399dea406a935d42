package rawfile

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

	"github.com/miplc/miplc/data/matfile"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/infile"
)

// format is the ending of a path that says how to read it, in lower case.
func Extension(path string) string {
	name := strings.ToLower(filepath.Base(path))
	if strings.HasSuffix(name, ".csv.gz") {
		return ".csv.gz"
	}
	return filepath.Ext(name)
}

func UnknownFormat(path, verb, known string) error {
	files := fmt.Sprintf("files ending in %q", Extension(path))
	if Extension(path) == "" {
		files = "files without an ending"
	}
	return diag.Errorf(diag.Pos{File: path}, "%s are not %s; known are %s", files, verb, known)
}

// unpack reads through gzip where the name of a file says that it is packed.
func Unpack(r io.Reader, path string) (io.Reader, error) {
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

// MATVariables reads the variables of a MAT v5 file.
func MATVariables(r io.Reader, limit TooLargeError) ([]*matfile.Array, error) {
	vars, err := matfile.Read(bufio.NewReaderSize(r, 1<<16), limit.Max)
	if errors.Is(err, matfile.ErrTooLarge) {
		return nil, &limit
	}
	return vars, err
}
