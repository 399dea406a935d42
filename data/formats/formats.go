// Package formats is the table of the formats of data files, by the endings of their names. It reads no files: messages
// and the language of specs need only the names, and package bagfile has the functions that read and write.
package formats

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/miplc/miplc/internal/diag"
)

// Format is the format of the files with an ending.
type Format struct {
	Ending  string
	Read    bool // a dataset can be read
	Write   bool // a dataset can be written
	OneBag  bool // a file may have the instances of one bag, which stay on disk
	Packed  bool // the file may be compressed
	Columns bool // the file names its columns
	Labels  bool // a file without candidate sets may have labels
}

// Table lists all formats.
var Table = []Format{
	{Ending: ".npz", Read: true, Write: true, OneBag: true, Packed: true, Labels: true},
	{Ending: ".mat", Read: true, Packed: true},
	{Ending: ".csv", Read: true, Write: true, Columns: true, Labels: true},
	{Ending: ".csv.gz", Read: true, Write: true, Packed: true, Columns: true, Labels: true},
	{Ending: ".h5", OneBag: true},
	{Ending: ".hdf5", OneBag: true},
	{Ending: ".safetensors", OneBag: true},
	{Ending: ".npy", OneBag: true},
}

// Of returns the format of a file, by its ending; the zero format if it is unknown.
func Of(path string) Format {
	if i := slices.IndexFunc(Table, func(f Format) bool { return f.Ending == Extension(path) }); i >= 0 {
		return Table[i]
	}
	return Format{}
}

// Endings are the endings of file names, such as .npz.
type Endings []string

func endings(of func(Format) bool) (list Endings) {
	for _, f := range Table {
		if of(f) {
			list = append(list, f.Ending)
		}
	}
	return list
}

// Readable returns the endings of datasets that can be read.
func Readable() Endings { return endings(func(f Format) bool { return f.Read }) }

// Writable returns the endings of datasets that can be written.
func Writable() Endings { return endings(func(f Format) bool { return f.Write }) }

// OneBag returns the endings of files with the instances of one bag.
func OneBag() Endings { return endings(func(f Format) bool { return f.OneBag }) }

// WithColumns returns the endings of datasets whose columns have names.
func WithColumns() Endings { return endings(func(f Format) bool { return f.Columns }) }

// WithLabels returns the endings of datasets that need no candidate sets.
func WithLabels() Endings { return endings(func(f Format) bool { return f.Labels }) }

// Match reports whether a file name has one of the endings.
func (e Endings) Match(path string) bool { return slices.Contains(e, Extension(path)) }

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
