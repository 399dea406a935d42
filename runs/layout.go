// Package runs carries a spec through the whole line, from its bags to a
// checked model, and keeps the folder in which a run leaves its results.
package runs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/miplc/miplc/internal/outdir"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/prepare"
	"github.com/miplc/miplc/train"
	"github.com/miplc/miplc/verify"
)

// Names inside the folder of a run. train.MetricsFile and the checkpoints
// stand beside them.
const (
	ModelFile   = "model.onnx"
	SpecFile    = "spec.yaml"    // the spec with all its defaults
	SplitFile   = "split.json"   // {"train": [...], "test": [...]} and "validation" if it has bags, bags counted from 1
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

// runFiles are all that a run writes. The summary goes first when they are
// removed, so that a half-removed run does not look finished.
func runFiles() []string {
	names := []string{SummaryFile, ModelFile, SpecFile, SplitFile, train.MetricsFile, train.CheckpointFile, train.PreviousFile,
		train.RefitFolder + "/" + train.CheckpointFile, train.RefitFolder + "/" + train.PreviousFile,
		verify.FailedModelFile, verify.FailedReportFile}
	for _, f := range plotFiles {
		names = append(names, PlotsFolder+"/"+f)
	}
	return names
}

// StateOf looks at a folder, which need not exist. Files that no mark lists are
// not those of a run, whatever their names.
func StateOf(dir string) (State, error) {
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return Absent, fmt.Errorf("%s is a file; a run needs a folder", dir)
	}
	mark, err := outdir.ReadMark(dir)
	if err != nil || mark == nil || mark.By != outdir.Run {
		return Absent, err
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

// claim locks the folders of trials and writes the specs of the runs and their splits. If
// one of the folders must not be overwritten, claim changes none. The caller closes the
// folders.
func (o *Options) claim(trials []*train.Trial, specs []*language.Spec) (folders []*outdir.Folder, err error) {
	taken := 0
	defer func() {
		if err == nil {
			return
		}
		for _, f := range folders[:taken] {
			abandon(f)
		}
		closeAll(folders)
	}()
	takes := make([]func() error, len(trials))
	for i, t := range trials {
		f, err := outdir.Lock(t.Dir)
		if err != nil {
			return folders, err
		}
		folders = append(folders, f)
		if takes[i], err = o.admit(f, t); err != nil {
			return folders, err
		}
	}
	for i, t := range trials {
		if err := takes[i](); err != nil {
			return folders, err
		}
		taken++
		if err := begin(t, specs[i]); err != nil {
			return folders, err
		}
	}
	return folders, nil
}

// closeAll closes folders, the first last: it made those above them.
func closeAll(folders []*outdir.Folder) {
	for _, f := range slices.Backward(folders) {
		f.Close()
	}
}

// admit gives what takes the folder of a trial, or says why it must be left alone.
func (o *Options) admit(f *outdir.Folder, t *train.Trial) (take func() error, err error) {
	files, inputs := runFiles(), prepare.InputFiles(t.Program.Spec, o.Data)
	how := f.Restart
	state, err := StateOf(t.Dir)
	switch {
	case err != nil:
		return nil, err
	case o.Resume && state != Absent:
		how, inputs = f.Claim, nil // its own spec may be what is read
	case f.Mark == nil || f.Mark.By == outdir.Run && state == Absent:
	case f.Mark.Other(t.Dir, outdir.Run, outdir.Build) != nil:
		return nil, f.Mark.Other(t.Dir, outdir.Run, outdir.Build)
	case o.Force:
	case state == Finished:
		return nil, fmt.Errorf("%s holds a finished run: choose another folder, or overwrite it with --force", t.Dir)
	case state == Interrupted:
		return nil, fmt.Errorf("%s contains an unfinished run: continue it with --resume, or start again with --force", t.Dir)
	default:
		return nil, fmt.Errorf("%s holds a build: choose another folder, or overwrite it with --force", t.Dir)
	}
	return func() error { return how(outdir.Run, files, inputs) }, f.CheckFiles(files, inputs)
}

// abandon removes a run that failed before its first checkpoint: there is nothing
// to resume. A trained model that failed its check is kept.
func abandon(f *outdir.Folder) {
	for _, name := range []string{train.CheckpointFile, train.PreviousFile, verify.FailedModelFile} {
		if _, err := os.Stat(filepath.Join(f.Dir, name)); err == nil {
			return
		}
	}
	_ = f.Clear() // the error that led here says more
}

// ModelPath is the model in the folder of a run.
func ModelPath(dir string) string { return filepath.Join(dir, ModelFile) }
