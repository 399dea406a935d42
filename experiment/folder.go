// The folder of an experiment: what its files are called, and to which experiment it belongs.

package experiment

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/miplc/miplc/experiment/definition"
	"github.com/miplc/miplc/internal/fileio"
)

// Files and folders in the folder of an experiment.
const (
	SpecFile      = "experiment.yaml" // the text of the file
	PlanFile      = "plan.json"       // the cells and datasets, see Plan
	ShardsFile    = "shards.json"     // the cells of each shard, see ShardPlan
	DataFolder    = "data"            // datasets that were generated, or copied for other machines
	SpecsFolder   = "specs"           // specs of the cells of shards, by their hashes
	LibraryFolder = "lib"             // the onnxruntime library for other machines
	ModelsFolder  = "models"          // one run folder per cell, with keep: models
	TrialsFolder  = "trials"          // checkpoints of unfinished cells
)

// claim locks and marks the folder for the experiment, or returns an error if it contains something
// else. The caller must close the folder.
func claim(dir string, e *definition.Experiment) (*fileio.Folder, error) {
	return fileio.ClaimFolder(dir, func(f *fileio.Folder) error {
		if err := checkOwner(f, e.Name.V); err != nil {
			return err
		}
		return f.Claim(fileio.ExperimentFolder, []string{SpecFile, PlanFile, ShardsFile}, nil)
	})
}

// checkOwner returns an error if the folder contains something other than results of the experiment.
func checkOwner(f *fileio.Folder, name string) error {
	if err := f.Mark.CheckKind(f.Dir, fileio.ExperimentFolder); err != nil {
		return err
	}
	if f.Mark == nil {
		if _, err := os.Lstat(filepath.Join(f.Dir, Folder)); err == nil {
			return fmt.Errorf("%s contains %s, which miplc did not write: move it away, or choose another folder", f.Dir, Folder)
		}
		return nil
	}
	have, err := Open(f.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if have.Name.V != name {
		return fmt.Errorf("%s contains the results of the experiment %q, not of %q: choose another folder", f.Dir,
			have.Name.V, name)
	}
	return nil
}

// write writes the file of the experiment and the plan to the folder.
func (p *Plan) write(dir string) error {
	file := filepath.Join(dir, SpecFile)
	// do not overwrite the file that is being read
	if have, err := fileio.Read(file); err != nil || !bytes.Equal(have, p.experiment.Text()) {
		if err := fileio.Replace(file, p.experiment.Text()); err != nil {
			return err
		}
	}
	return fileio.ReplaceJSON(filepath.Join(dir, PlanFile), p)
}

// csvColumns are the options for the columns of CSV files, without those of a model.
type csvColumns struct {
	Ignore      []string `json:"ignore,omitempty"`
	Coordinates []string `json:"coordinates,omitempty"`
	Features    []string `json:"features,omitempty"`
}

func columnsOf(o Work) csvColumns {
	c := o.Data.Reading.Columns
	return csvColumns{c.Ignore, c.Coordinates, c.Features}
}

// resumeColumns sets the columns of CSV files to those of the plan in the folder, if there is one of
// the same experiment and the options name none: the experiment continues on the same bags.
func (o *Work) resumeColumns(e *definition.Experiment) error {
	if c := columnsOf(*o); len(c.Ignore)+len(c.Coordinates)+len(c.Features) > 0 {
		return nil
	}
	was, err := ReadPlan(o.Dir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && was.SHA256 != sumOf(e.Text()) {
		return nil
	}
	if err != nil {
		return err
	}
	c := &o.Data.Reading.Columns
	c.Ignore, c.Coordinates, c.Features = was.Columns.Ignore, was.Columns.Coordinates, was.Columns.Features
	return nil
}

// sumOf returns the SHA-256, in hexadecimal, of the content of a file in the folder.
func sumOf(content []byte) string { return fmt.Sprintf("%x", sha256.Sum256(content)) }

// Open reads the experiment in a folder.
func Open(dir string) (*definition.Experiment, error) {
	path := filepath.Join(dir, SpecFile)
	src, err := fileio.Read(path)
	if err != nil {
		return nil, fmt.Errorf("%s is not a folder that miplc experiment wrote: %w", dir, err)
	}
	return definition.Parse(path, src)
}

// ReadPlan reads the plan of the experiment in a folder.
func ReadPlan(dir string) (*Plan, error) {
	p := &Plan{}
	if err := fileio.ReadJSON(filepath.Join(dir, PlanFile), p); err != nil {
		return nil, fmt.Errorf("%s is not a folder that miplc experiment wrote: %w", dir, err)
	}
	return p, nil
}
