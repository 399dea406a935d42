// Package runs trains models and writes their folders: the checked model, the spec, the split,
// metrics, figures and a summary.
package runs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/miplc/miplc/internal/fileio"
	"github.com/miplc/miplc/train"
)

// Names of files in the folder of a run. Package train names the metrics and the checkpoints.
const (
	ModelFile   = "model.onnx"
	SpecFile    = "spec.yaml"    // the spec with all defaults
	SplitFile   = "split.json"   // see splitFile
	SummaryFile = "summary.json" // written last; marks a finished run
	PlotsFolder = "plots"
)

// FolderState is the state of the run in a folder.
type FolderState int

const (
	Absent      FolderState = iota // the folder has no run
	Interrupted                    // started but not finished
	Finished
)

// runFiles returns the names of all files that a run may write. The summary is first, because files
// are removed in this order and a partly removed run must not look finished.
func runFiles() []string {
	names := []string{SummaryFile, ModelFile, SpecFile, SplitFile, train.MetricsFile, train.CheckpointFile,
		train.PreviousFile,
		train.RefitFolder + "/" + train.CheckpointFile, train.RefitFolder + "/" + train.PreviousFile,
		FailedModelFile, FailedReportFile}
	for _, f := range plotFiles {
		names = append(names, PlotsFolder+"/"+f)
	}
	return names
}

// StateOf returns the state of the run in a folder, which need not exist. It ignores files that the
// mark of the folder does not list.
func StateOf(dir string) (FolderState, error) {
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return Absent, fmt.Errorf("%s is a file; a run needs a folder", dir)
	}
	mark, err := fileio.ReadMark(dir)
	if err != nil || mark == nil || mark.By != fileio.RunFolder {
		return Absent, err
	}
	for _, part := range []struct {
		name  string
		state FolderState
	}{{SummaryFile, Finished}, {SpecFile, Interrupted}, {ModelFile, Interrupted}, {train.CheckpointFile, Interrupted},
		{train.PreviousFile, Interrupted}} {
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

// ModelPath returns the path of the model in the folder of a run.
func ModelPath(dir string) string { return filepath.Join(dir, ModelFile) }
