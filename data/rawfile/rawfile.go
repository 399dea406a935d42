// Package rawfile reads data files within limits: gzip, CSV text as other programs write it, and
// MAT variables. Its errors name the file.
package rawfile

import (
	"bufio"
	"compress/gzip"
	"encoding/csv"
	"errors"
	"io"
	"io/fs"
	"strings"

	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/fileio"
)

// Unpack decompresses r if path ends in .gz.
func Unpack(r io.Reader, path string) (io.Reader, error) {
	if !strings.HasSuffix(strings.ToLower(path), ".gz") {
		return r, nil
	}
	z, err := gzip.NewReader(bufio.NewReader(r))
	if err != nil {
		return nil, diag.Errorf(diag.Pos{File: path}, "not a gzip file, though its name says so: %v", fileio.CutShort(err))
	}
	return z, nil
}

// FileError adds the path to an error of the operating system or of CSV. It returns diagnostics
// unchanged.
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
		return fileio.WithAlike(diag.Errorf(diag.Pos{File: path}, "there is no such file"), path)
	case errors.As(err, &p):
		return diag.Errorf(diag.Pos{File: path}, "%v", p.Err)
	}
	return diag.Errorf(diag.Pos{File: path}, "%v", err)
}
