// Finds and opens the data of a spec, with its columns and its hash.

package prepare

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/compile/encoder"
	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/data/bagfile"
	"github.com/miplc/miplc/data/generate"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/fileio"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/language/schema"
)

// InputFiles returns the files of a spec: those it consists of, its dataset and its index file.
func InputFiles(spec *language.Spec, folder bagfile.Folder) []string {
	list := spec.Files()
	for _, name := range []schema.Str{spec.Data.Set, spec.Data.Split.Index, spec.Train.Init.Model,
		spec.Data.Encoder.File} {
		if path, err := find(spec, name, folder); err == nil && name.V != "" {
			list = append(list, path)
		}
	}
	return list
}

// openData opens or generates the dataset of a spec and checks its hash. With an encoder, the dataset
// has images and not their features. A file is searched in the working directory and in folder.
func openData(spec *language.Spec, folder bagfile.Folder) (set *data.Dataset, images *encoder.Images, err error) {
	if spec.Generates() && !spec.Encodes() {
		set, err = generate.Prototypes(prototypes(spec))
	} else {
		set, images, err = openFile(spec, folder)
	}
	if err != nil {
		return nil, nil, err
	}
	return set, images, checkHash(spec, set)
}

// openFile opens the file of the dataset of a spec, or its images.
func openFile(spec *language.Spec, folder bagfile.Folder) (*data.Dataset, *encoder.Images, error) {
	path, err := find(spec, spec.Data.Set, folder)
	if err != nil {
		return nil, nil, hintSet(err, spec.Data.Set)
	}
	reading := readingOf(spec, folder)
	if !spec.Encodes() {
		set, err := bagfile.OpenWith(path, reading)
		return set, nil, err
	}
	images, err := OpenImages(spec, path, reading, folder)
	if err != nil {
		return nil, nil, err
	}
	return images.Set, images, nil
}

// checkHash returns a *SpecError if the spec has the hash of another dataset.
func checkHash(spec *language.Spec, set *data.Dataset) error {
	want := spec.Data.SHA256
	if want.V == "" {
		return nil
	}
	have := set.Hash()
	if strings.EqualFold(want.V, have) {
		return nil
	}
	d := diag.Errorf(want.Pos, "%s is not the dataset that data.sha256 states: its SHA-256 is %s, expected %s",
		spec.Data.Set.V, have, want.V).
		WithNote("use the dataset with the expected hash, or change data.sha256 (an empty text accepts any dataset)")
	return &SpecError{spec.AtUserLine(d)}
}

// readingOf returns the options for reading the dataset of a spec.
func readingOf(spec *language.Spec, folder bagfile.Folder) bagfile.Reading {
	o := folder.Reading
	o.Columns = columnsOf(spec, o.Columns)
	o.Labels, o.Form = bagfile.Labels(spec.Data.Labels.V), bagfile.SpecForm
	return o
}

// columnsOf returns the columns that the spec and the command line declare.
func columnsOf(spec *language.Spec, flags bagfile.Columns) bagfile.Columns {
	c := &spec.Data.Columns
	names := func(more []string, list schema.Strs) []string {
		more = slices.Clone(more)
		for _, name := range list.V {
			if !slices.Contains(more, name.V) { // a resumed run may repeat its flags
				more = append(more, name.V)
			}
		}
		return more
	}
	return bagfile.Columns{
		Roles: bagfile.Roles{
			Bag: c.Bag.V, Label: c.Label.V, Candidates: c.Candidates.V, InstanceLabel: c.InstanceLabel.V,
			Group: cmp.Or(c.Group.V, spec.Data.Split.Group.V),
		},
		Ignore: names(flags.Ignore, c.Ignore), Features: names(flags.Features, c.Features),
		Coordinates: names(flags.Coordinates, c.Coordinates),
	}
}

func prototypes(spec *language.Spec) generate.PrototypeOptions {
	g := spec.Data.Generated
	return generate.PrototypeOptions{
		Bags: g.Bags.V, Classes: g.Classes.V, Features: g.Features.V, Candidates: g.Candidates.V,
		Positives: g.Positives.V, MinSize: g.MinSize.V, MaxSize: g.MaxSize.V, Noise: g.Noise.V,
		Seed: uint64(g.Seed.V), Multi: spec.Multi(),
	}
}

// DataError marks an error of a dataset, as opposed to the spec.
type DataError struct{ Err error }

func (e *DataError) Error() string { return e.Err.Error() }
func (e *DataError) Unwrap() error { return e.Err }

// notFoundError marks the error of a file that was not found.
type notFoundError struct {
	diag.Diagnostic
	name string // of the file
}

func (m notFoundError) Unwrap() error { return m.Diagnostic }

// find looks up a file named in the spec; see FindData.
func find(spec *language.Spec, name schema.Str, folder bagfile.Folder) (string, error) {
	return FindData(&spec.Origin, name.Pos, name.V, folder)
}

// FindData searches a file that a document names at pos, in the working directory and then in folder.
// It returns its path.
func FindData(document *schema.Origin, pos diag.Pos, name string, folder bagfile.Folder) (string, error) {
	places := []string{name}
	if folder.Dir != "" && !filepath.IsAbs(name) {
		places = append(places, filepath.Join(folder.Dir, name))
	}
	for _, p := range places {
		if _, err := os.Stat(p); err == nil {
			return p, nil
		} else if !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
	}
	d := diag.Errorf(pos, "there is no file %s", name).WithNote("looked for %s", strings.Join(places, " and "))
	for _, p := range places {
		d = fileio.WithAlike(d, p)
	}
	if folder.Dir == "" {
		d = d.WithNote("give the path of the file, or name the folder of your datasets with --data-dir or MIPLC_DATA")
	}
	return "", notFoundError{document.AddSource(d), name}
}

// synthFile matches the file names of generated datasets in shipped specs.
var synthFile = regexp.MustCompile(`^([a-z]+-mipl)-r([0-9])\.npz$`)

// hintSet adds advice to the error of a missing dataset of a shipped spec, because most users do
// not have its file.
func hintSet(err error, set schema.Str) error {
	var m notFoundError
	if !errors.As(err, &m) || !strings.HasPrefix(set.Pos.File, schema.Builtin) {
		return err
	}
	if part := synthFile.FindStringSubmatch(set.V); part != nil {
		m.Diagnostic = m.WithNote("to create it: miplc data synth %s --r %s -o %s", part[1], part[2], set.V)
	}
	m.Diagnostic = m.WithNote("to use your own bags: --set data.set=FILE")
	return m
}

// assumed are the sizes for data that cannot be opened. They are small, but large enough for
// images with two convolutions.
var assumed = compile.Signature{Instance: []int{32}, Classes: 5}

// Describe returns the shapes for compiling a spec, and its bags. It does not generate data: the bags then have
// only sizes, which alternate. If the data file is missing, the shapes are data.shape and data.classes, or assumed
// sizes, note says so, and set is nil.
func Describe(spec *language.Spec, folder bagfile.Folder) (sig compile.Signature, set *data.Dataset, note string,
	err error) {
	if g := spec.Data.Generated; spec.Generates() {
		set = &data.Dataset{Offsets: make([]int, g.Bags.V+1)}
		for bag := range g.Bags.V {
			set.Offsets[bag+1] = set.Offsets[bag] + []int{g.MaxSize.V, g.MinSize.V}[bag%2]
		}
		sig, err = compile.SignatureOf(spec, []int{g.Features.V}, g.Classes.V)
		return sig, set, "", err
	}
	set, images, err := openData(spec, folder)
	if err == nil {
		shape := set.Shape
		if images != nil {
			shape = images.Shape()
		}
		sig, err = compile.SignatureOf(spec, shape, set.Classes)
		return sig, set, "", err
	}
	gone := notFoundError{}
	switch wrong := (*SpecError)(nil); {
	case errors.As(err, &wrong):
		return sig, nil, "", wrong.Err
	case !errors.As(err, &gone):
		return sig, nil, "", &DataError{err}
	}
	sig = assumed
	var from []string
	if shape := spec.Data.Shape.V; len(shape) > 0 {
		sig.Instance, from = shape, append(from, "data.shape")
	}
	if k := spec.Data.Classes.V; k > 0 {
		sig.Classes, from = k, append(from, "data.classes")
	}
	what := "assumed sizes"
	if len(from) > 0 {
		what = strings.Join(from, " and ")
	}
	note = fmt.Sprintf("%s was not found: shapes were checked with %s (%v, %s)",
		gone.name, what, sig.Instance, diag.Count(sig.Classes, "class"))
	if index := spec.Data.Split.Index; index.V != "" {
		if _, err := find(spec, index, folder); err != nil {
			note += fmt.Sprintf("; the index file %s was not found either", index.V)
		}
	}
	return sig, nil, note, nil
}
