// The data of a spec: finding and opening it, its columns and its hash.

package prepare

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
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
		if path, err := FindData(name, folder); err == nil && name.V != "" {
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
	return set, images, checkHash(&spec.Data, set)
}

// openFile opens the file of the dataset of a spec, or its images.
func openFile(spec *language.Spec, folder bagfile.Folder) (*data.Dataset, *encoder.Images, error) {
	reading := readingOf(&spec.Data, folder.Reading)
	path, err := FindData(spec.Data.Set, folder)
	if err != nil {
		return nil, nil, err
	}
	if spec.Encodes() {
		images, err := OpenImages(&spec.Data.Encoder, path, reading, folder)
		if err != nil {
			return nil, nil, err
		}
		return images.Set, images, nil
	}
	set, err := bagfile.OpenWith(path, reading)
	return set, nil, err
}

// checkHash returns a *diag.InvalidError if data.sha256 is the hash of another dataset.
func checkHash(d *language.Data, set *data.Dataset) error {
	want := d.SHA256
	if want.V == "" {
		return nil
	}
	have := set.Hash()
	if strings.EqualFold(want.V, have) {
		return nil
	}
	return diag.Invalid(diag.Errorf(want.Pos, "%s is not the dataset that data.sha256 states: its SHA-256 is %s, "+
		"expected %s",
		d.Set.V, have, want.V).
		WithNote("use the dataset with the expected hash, or change data.sha256 (an empty text accepts any dataset)"))
}

// readingOf returns the options for reading the dataset of a spec, see withColumns. flags are those of the command
// line.
func readingOf(d *language.Data, flags bagfile.Reading) bagfile.Reading {
	names := func(list schema.Strs) (names []string) {
		for _, name := range list.V {
			names = append(names, name.V)
		}
		return names
	}
	c := &d.Columns
	flags.Columns = bagfile.Columns{
		Roles: bagfile.Roles{
			Bag: c.Bag.V, Label: c.Label.V, Candidates: c.Candidates.V, InstanceLabel: c.InstanceLabel.V,
			Group: cmp.Or(c.Group.V, d.Split.Group.V),
		},
		Ignore: names(c.Ignore), Features: names(c.Features), Coordinates: names(c.Coordinates),
	}
	flags.Labels, flags.Form = bagfile.Labels(d.Labels.V), bagfile.SpecForm
	return flags
}

func prototypes(spec *language.Spec) generate.PrototypeOptions {
	g := spec.Data.Generated
	return generate.PrototypeOptions{
		Bags: g.Bags.V, Classes: g.Classes.V, Features: g.Features.V, Candidates: g.Candidates.V,
		Positives: g.Positives.V, MinSize: g.MinSize.V, MaxSize: g.MaxSize.V, Noise: g.Noise.V,
		Seed: uint64(g.Seed.V), Multi: spec.Multi(),
	}
}

// FindData searches a file that a document names, in the working directory and then in folder. It returns its path.
func FindData(name schema.Str, folder bagfile.Folder) (string, error) {
	places := []string{name.V}
	if folder.Dir != "" && !filepath.IsAbs(name.V) {
		places = append(places, filepath.Join(folder.Dir, name.V))
	}
	for _, p := range places {
		if _, err := os.Stat(p); err == nil {
			return p, nil
		} else if !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
	}
	d := diag.Errorf(name.Pos, "there is no file %s", name.V).WithNote("looked for %s", strings.Join(places, " and "))
	for _, p := range places {
		d = fileio.WithAlike(d, p)
	}
	if folder.Dir == "" {
		d = d.WithNote("give the path of the file, or name the folder of your datasets with --data-dir or MIPLC_DATA")
	}
	return "", &notFoundError{d, name}
}

// assumed are the sizes for data that cannot be opened. They are small, but large enough for
// images with two convolutions.
var assumed = compile.Signature{Instance: []int{32}, Classes: 5}

// Describe returns the shapes for compiling a spec, and its bags. It does not generate data: the bags then have
// only sizes, which alternate. If the data file is missing, the shapes are data.shape and data.classes, or assumed
// sizes, note says so, and set is nil. An error that is not a *diag.InvalidError is one of the data.
func Describe(spec *language.Spec, folder bagfile.Folder) (sig compile.Signature, set *data.Dataset, note string,
	err error) {
	if g := spec.Data.Generated; spec.Generates() {
		set = &data.Dataset{Offsets: make([]int, g.Bags.V+1)}
		for bag := range g.Bags.V {
			set.Offsets[bag+1] = set.Offsets[bag] + []int{g.MaxSize.V, g.MinSize.V}[bag%2]
		}
		sig, err = compile.SignatureOf(spec, []int{g.Features.V}, g.Classes.V)
		return sig, set, "", diag.Invalid(err)
	}
	set, images, err := openData(withColumns(spec, folder.Columns), folder)
	if err == nil {
		shape := set.Shape
		if images != nil {
			shape = images.Shape()
		}
		sig, err = compile.SignatureOf(spec, shape, set.Classes)
		return sig, set, "", diag.Invalid(err)
	}
	gone, missing := errors.AsType[*notFoundError](err)
	if !missing {
		return sig, nil, "", located(spec, err)
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
		gone.name.V, what, sig.Instance, diag.Count(sig.Classes, "class"))
	if index := spec.Data.Split.Index; index.V != "" {
		if _, err := FindData(index, folder); err != nil {
			note += fmt.Sprintf("; the index file %s was not found either", index.V)
		}
	}
	return sig, nil, note, nil
}
