// Package runs carries a spec through the whole line, from its bags to a
// checked model, and keeps the folder in which a run leaves its results.
package runs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/miplc/miplc/train"
)

// Names inside the folder of a run. train.MetricsFile and the checkpoints
// stand beside them.
const (
	ModelFile   = "model.onnx"
	SpecFile    = "spec.yaml"    // the spec with all its defaults
	SplitFile   = "split.json"   // {"train": [...], "test": [...]}, bags counted from 0
	SummaryFile = "summary.json" // written last: a folder that has it is finished
	PlotsFolder = "plots"
)

// State is how far the run in a folder has come.
type State int

const (
	Absent      State = iota // nothing of a run is there
	Interrupted              // begun, not finished
	Finished
)

// StateOf looks at a folder, which need not exist.
func StateOf(dir string) (State, error) {
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return Absent, fmt.Errorf("%s is a file; a run needs a folder", dir)
	}
	for _, part := range []struct {
		name  string
		state State
	}{{SummaryFile, Finished}, {SpecFile, Interrupted}, {ModelFile, Interrupted}, {train.CheckpointFile, Interrupted}, {train.PreviousFile, Interrupted}} {
		_, err := os.Stat(filepath.Join(dir, part.name))
		if err == nil {
			return part.state, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return Absent, err
		}
	}
	return Absent, nil
}

// claim makes the folder ready for a run, or says why it must be left alone.
func claim(dir string, resume, force bool) error {
	state, err := StateOf(dir)
	switch {
	case err != nil:
		return err
	case force:
		if err := wipe(dir); err != nil {
			return err
		}
	case state == Finished:
		return fmt.Errorf("%s holds a finished run: choose another folder, or overwrite it with --force", dir)
	case state == Interrupted && !resume:
		return fmt.Errorf("%s holds an unfinished run: go on with it by --resume, or start again with --force", dir)
	case state == Absent && resume:
		return fmt.Errorf("there is no run in %s to resume: leave --resume out to start one", dir)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return sweep(dir)
}

// sweep removes files that a killed process was still writing aside: hidden ones
// named after a file of the run.
func sweep(dir string) error {
	names := []string{SummaryFile, ModelFile, SpecFile, SplitFile, train.MetricsFile}
	for _, f := range plotFiles {
		names = append(names, filepath.Join(PlotsFolder, f))
	}
	for _, name := range names {
		folder, base := filepath.Split(filepath.Join(dir, name))
		entries, err := os.ReadDir(folder)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for _, e := range entries {
			if strings.HasPrefix(e.Name(), "."+base+".") {
				if err := os.Remove(filepath.Join(folder, e.Name())); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// wipe removes what a run leaves, and nothing else. The summary goes first, so
// that a half-removed run does not look finished.
func wipe(dir string) error {
	for _, name := range []string{
		SummaryFile, ModelFile, SpecFile, SplitFile, train.MetricsFile,
		train.CheckpointFile, train.PreviousFile, PlotsFolder,
	} {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// abandon removes a run that failed before its first checkpoint, and its folder
// if nothing else is in it: there is nothing to resume.
func abandon(dir string) {
	for _, name := range []string{train.CheckpointFile, train.PreviousFile} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			return
		}
	}
	if wipe(dir) == nil {
		_ = os.Remove(dir) // fails, rightly, where other files are
	}
}

// WriteFile writes a file aside and gives it its name when it is complete.
func WriteFile(path string, content []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
		}
	}()
	if _, err = f.Write(content); err != nil {
		return err
	}
	if err = f.Chmod(0o644); err != nil {
		return err
	}
	if err = f.Sync(); err != nil {
		return err
	}
	if err = f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// ModelPath is the model in the folder of a run.
func ModelPath(dir string) string { return filepath.Join(dir, ModelFile) }
