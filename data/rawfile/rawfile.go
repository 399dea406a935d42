// Package rawfile reads data files within limits: gzip, CSV text as other programs write it, and
// MAT variables. Its errors name the file.
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

	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/fileio"
)

// Extension returns the extension that determines the format of a file, in lower case, e.g. ".npz"
// or ".csv.gz".
func Extension(path string) string {
	name := strings.ToLower(filepath.Base(path))
	if strings.HasSuffix(name, ".csv.gz") {
		return ".csv.gz"
	}
	return filepath.Ext(name)
}

// UnknownFormat returns the error for a path whose extension is not supported. verb is e.g. "read",
// known the supported extensions.
func UnknownFormat(path, verb, known string) diag.Diagnostic {
	files := fmt.Sprintf("files ending in %q", Extension(path))
	if Extension(path) == "" {
		files = "files without an ending"
	}
	d := diag.Errorf(diag.Pos{File: path}, "%s are not %s; known are %s", files, verb, known)
	if Extension(path) == ".parquet" {
		d = d.WithNote("%s", ConvertParquet(path, ".csv"))
	}
	return d
}

// parquetPrograms convert a Parquet table in pandas, by the extension of the result: rows of a dataset
// to CSV, the instances of one bag to NumPy arrays.
var parquetPrograms = map[string]string{
	".csv": "import sys, pandas; pandas.read_parquet(sys.argv[1]).to_csv(sys.argv[2], index=False)",
	".npz": `import sys, numpy, pandas; t = pandas.read_parquet(sys.argv[1]); ` +
		`numpy.savez(sys.argv[2], features=numpy.array(t.drop(columns=["x", "y"], errors="ignore"), "float32", order="C"), ` +
		`coords=numpy.array(t.filter(["x", "y"]), order="C"))`,
}

// ConvertParquet returns the advice to convert a Parquet file to a file with the extension .csv or
// .npz, with the command.
func ConvertParquet(path, extension string) string {
	to := strings.TrimSuffix(path, filepath.Ext(path)) + extension
	return fmt.Sprintf("convert the file: python3 -c %s %s %s",
		diag.ShellWord(parquetPrograms[extension]), diag.ShellWord(path), diag.ShellWord(to))
}

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
