// Copies of all that shards need, so that another machine needs only the folder of the experiment.

package experiment

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/miplc/miplc/data/bagfile"
	"github.com/miplc/miplc/data/formats"
	"github.com/miplc/miplc/experiment/definition"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/fileio"
	"github.com/miplc/miplc/internal/onnxruntime"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/runs/prepare"
)

// staged is a file in the folder of the experiment with the hash of its content.
type staged struct {
	File   string `json:"file"` // slash-separated, relative to the folder
	SHA256 string `json:"sha256"`
}

// stagedSet is a dataset of cells in shards.
type stagedSet struct {
	SetFacts
	File   string `json:"file"`             // slash-separated, relative to the folder
	Labels string `json:"labels,omitempty"` // data.labels of the specs
	// Splits are those of the experiment, with the index file in the folder.
	Splits definition.Splits `json:"splits"`
	// Files are the copies of the files of a table of bags, by their names in the table.
	Files map[string]string `json:"files,omitempty"`
	// Features describes the file if it contains features that an encoder computed.
	Features *stagedFeatures `json:"features,omitempty"`
}

// stagedFeatures are features that were computed when the shards were planned.
type stagedFeatures struct {
	Source string `json:"source"` // data.Dataset.Source
	SHA256 string `json:"sha256"` // of the file
}

// stagedGrid is the grid of a learner on a dataset.
type stagedGrid struct {
	definition.Coord
	Grid []gridPoint `json:"choices"` // their hashes are names of files in SpecsFolder
}

// stage copies the datasets, splits and specs of groups and the onnxruntime library to the folder.
func (d *ShardPlan) stage(o Work, p *Plan, groups []*group) error {
	needed, cells := map[*sharedDataset]bool{}, map[definition.Coord]*Cell{}
	for _, c := range cellsOf(groups) {
		needed[c.dataset] = true
		at := c.AllSplits()
		if cells[at] == nil {
			cells[at] = c
			if err := d.stageSpecs(o.Dir, at, c); err != nil {
				return err
			}
		}
	}
	for _, in := range p.datasets {
		if !needed[in] {
			continue
		}
		if err := d.stageSet(o.Dir, in); err != nil {
			return err
		}
	}
	return d.stageLibrary(o.Dir)
}

func (d *ShardPlan) stageSpecs(dir string, at definition.Coord, c *Cell) error {
	for _, point := range c.grid {
		if checkUnchanged(point.path(dir), point.Hash) == nil {
			continue
		}
		if err := fileio.Replace(point.path(dir), point.spec.YAML()); err != nil {
			return err
		}
	}
	d.Grids = append(d.Grids, stagedGrid{at, c.grid})
	return nil
}

// path returns the path of the spec in the folder of the experiment.
func (c *gridPoint) path(dir string) string { return filepath.Join(dir, SpecsFolder, c.Hash+".yaml") }

func (d *ShardPlan) stageSet(dir string, in *sharedDataset) error {
	set := stagedSet{SetFacts: in.facts, Labels: in.labels, Splits: in.splits}
	name := diag.FileName(in.facts.title())
	path := filepath.Join(DataFolder, name+"-"+in.facts.Hash[:8]+formats.Extension(in.path))
	rel, err := filepath.Rel(filepath.Join(dir, DataFolder), in.path)
	if in.encoder != nil {
		path = filepath.Join(DataFolder, name+"-"+in.facts.Hash[:8]+".npz")
		if set.Features, err = stageFeatures(filepath.Join(dir, path), in); err != nil {
			return err
		}
	} else if err == nil && filepath.IsLocal(rel) {
		path = filepath.Join(DataFolder, rel) // already in the folder
	} else if err := stageFile(filepath.Join(dir, path), in.path); err != nil {
		return err
	}
	set.File = filepath.ToSlash(path)
	if set.Files, err = stageFiles(dir, name+"-"+in.facts.Hash[:8], in.files); err != nil {
		return err
	}
	if index := in.splits.Index; index.V != "" {
		files := 1
		set.Splits.Index.V = DataFolder + "/" + name + "-splits" + formats.Extension(index.V)
		if strings.Contains(index.V, definition.SplitPlaceholder) {
			files = in.splits.Count.V
			set.Splits.Index.V = DataFolder + "/" + name + "-split-" + definition.SplitPlaceholder + formats.Extension(index.V)
		}
		for i := range files {
			number := strconv.Itoa(i + 1)
			one := index
			one.V = strings.ReplaceAll(index.V, definition.SplitPlaceholder, number)
			from, err := prepare.FindData(one, in.folder)
			if err != nil {
				return err
			}
			if err := stageFile(filepath.Join(dir, strings.ReplaceAll(set.Splits.Index.V, definition.SplitPlaceholder, number)),
				from); err != nil {
				return err
			}
		}
	}
	d.Sets = append(d.Sets, set)
	return nil
}

// stageFiles places the files of a table of bags, by their names in the table, in a folder of the
// given name, and returns their new paths. A hard link saves the space of a copy where the file
// system can make one.
func stageFiles(dir, name string, files map[string]string) (map[string]string, error) {
	places := map[string]string{}
	for i, written := range slices.Sorted(maps.Keys(files)) {
		from := files[written]
		places[written] = fmt.Sprintf("%s/%s/%d-%s", DataFolder, name, i+1, filepath.Base(from))
		if err := linkFile(filepath.Join(dir, filepath.FromSlash(places[written])), from); err != nil {
			return nil, err
		}
	}
	return places, nil
}

// linkFile makes a hard link, or a copy if that is not possible.
func linkFile(to, from string) error {
	from, err := filepath.EvalSymlinks(from)
	if err != nil {
		return err
	}
	if a, err := os.Stat(to); err == nil {
		if b, err := os.Stat(from); err == nil && os.SameFile(a, b) {
			return nil
		}
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
		return err
	}
	if os.Link(from, to) == nil {
		return nil
	}
	return stageFile(to, from)
}

// stageFeatures writes the features of images to a dataset file, so that shards need neither the
// images nor the encoder.
func stageFeatures(to string, in *sharedDataset) (*stagedFeatures, error) {
	set, err := in.openBags()
	if err != nil {
		return nil, err
	}
	if err := bagfile.Save(to, set.Dataset); err != nil {
		return nil, err
	}
	hash, err := fileio.SHA256(to)
	return &stagedFeatures{set.Source, hash}, err
}

// stageLibrary copies the onnxruntime library that computes features of images and measures accuracies, if there is
// one.
func (d *ShardPlan) stageLibrary(dir string) error {
	if !onnxruntime.Available() {
		return nil
	}
	library, err := onnxruntime.Start("")
	missing := (*onnxruntime.NotFoundError)(nil)
	if errors.As(err, &missing) && !missing.Named() {
		return nil
	}
	if err != nil {
		return err
	}
	path := filepath.Join(LibraryFolder, filepath.Base(library.Path))
	if err := stageFile(filepath.Join(dir, path), library.Path); err != nil {
		return err
	}
	hash, err := fileio.SHA256(library.Path)
	d.Library = &staged{filepath.ToSlash(path), hash}
	return err
}

// stageFile copies a file unless the copy already has the same content.
func stageFile(to, from string) error {
	if a, err := fileio.SHA256(to); err == nil {
		if b, err := fileio.SHA256(from); err != nil || a == b {
			return err
		}
	}
	in, _, err := fileio.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := fileio.Create(to, fileio.WriteOptions{Force: true})
	if err != nil {
		return err
	}
	return out.Fill(func(w io.Writer) error {
		_, err := io.Copy(w, in)
		return err
	})
}

// startLibrary starts the copied onnxruntime library, if there is one, unless the user has named another one.
func (d *ShardPlan) startLibrary(dir string) error {
	if d.Library == nil {
		return nil
	}
	path := filepath.Join(dir, filepath.FromSlash(d.Library.File))
	if err := checkUnchanged(path, d.Library.SHA256); err != nil || !onnxruntime.Available() ||
		onnxruntime.Loaded() != "" {
		return err
	}
	_, err := onnxruntime.Start(path)
	return err
}

// load reads the copy of a spec.
func (c *gridPoint) load(dir string) error {
	path := c.path(dir)
	if err := checkUnchanged(path, c.Hash); err != nil {
		return err
	}
	spec, err := language.Load(path)
	if err != nil {
		return err
	}
	if sumOf(spec.YAML()) != c.Hash {
		return fmt.Errorf("this version of miplc reads %s as another spec than the version that planned", path)
	}
	c.use(spec)
	return nil
}

// checkUnchanged returns an error if a file is not the one with which the plan was made.
func checkUnchanged(path, hash string) error {
	have, err := fileio.SHA256(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s is missing", path)
	case err != nil:
		return err
	case have != hash:
		return fmt.Errorf("%s was changed since the experiment was planned", path)
	}
	return nil
}

// dataset returns the dataset without opening it.
func (s *stagedSet) dataset(o Work) *sharedDataset {
	in := &sharedDataset{facts: s.SetFacts, features: s.Features, path: filepath.Join(o.Dir, filepath.FromSlash(s.File)),
		labels: s.Labels, folder: o.Data, splits: s.Splits}
	in.folder.Copies = map[string]string{}
	for name, path := range s.Files {
		in.folder.Copies[name] = filepath.Join(o.Dir, filepath.FromSlash(path))
	}
	if index := &in.splits.Index; index.V != "" {
		index.V = filepath.Join(o.Dir, filepath.FromSlash(index.V))
	}
	return in
}
