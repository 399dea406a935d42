// The folder of a run: its files, its state, who may write to it, and the list of the runs that one command trains, so
// that --resume and other commands find them again.

package runs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/miplc/miplc/internal/fileio"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/runs/prepare"
	"github.com/miplc/miplc/train"
)

// claim locks the folders of trials and writes the specs and splits of the runs. If one of the
// folders must not be overwritten, claim changes none. Before it changes the first one it calls list, which writes the
// list of the runs: after a kill in between, --resume finds them. The caller must close the folders.
func (o *Task) claim(trials []*train.Trial, specs []*language.Spec, list func() error) (folders []*fileio.Folder,
	err error) {
	claimed := 0
	defer func() {
		if err == nil {
			return
		}
		for _, f := range folders[:claimed] {
			clearUnlessResumable(f)
		}
		closeAll(folders)
	}()
	// Check all folders first, so that none is changed if one of them must not be overwritten.
	claims := make([]func() error, len(trials))
	for i, t := range trials {
		f, err := fileio.LockFolder(t.Dir)
		if err != nil {
			return folders, err
		}
		folders = append(folders, f)
		if claims[i], err = o.checkFolder(f, t); err != nil {
			return folders, err
		}
	}
	if err := list(); err != nil {
		return folders, err
	}
	for i, t := range trials {
		if err := claims[i](); err != nil {
			return folders, err
		}
		claimed++
		if err := fileio.Replace(filepath.Join(t.Dir, SpecFile), specs[i].YAML()); err != nil {
			return folders, err
		}
		if err := writeSplit(t.Dir, t.Split); err != nil {
			return folders, err
		}
	}
	return folders, nil
}

// closeAll closes folders in reverse order, because the first one created their parent folders.
func closeAll(folders []*fileio.Folder) {
	for _, f := range slices.Backward(folders) {
		f.Close()
	}
}

// checkFolder returns a function that claims the folder of a trial, or an error if the folder must
// not be overwritten.
func (o *Task) checkFolder(f *fileio.Folder, t *train.Trial) (claim func() error, err error) {
	files, inputs := runFiles(), prepare.InputFiles(t.Program.Spec, o.Data)
	take := f.Restart
	state, err := StateOf(t.Dir)
	switch {
	case err != nil:
		return nil, err
	case o.Resume && state != Absent:
		take, inputs = f.Claim, nil // the command may read the spec in the folder
	case f.Mark == nil || f.Mark.By == fileio.RunFolder && state == Absent:
	case f.Mark.CheckKind(t.Dir, fileio.RunFolder, fileio.BuildFolder) != nil:
		return nil, f.Mark.CheckKind(t.Dir, fileio.RunFolder, fileio.BuildFolder)
	case o.Force:
	case state == Finished:
		return nil, fmt.Errorf("%s contains a finished run: choose another folder, or overwrite it with --force", t.Dir)
	case state == Interrupted:
		return nil, fmt.Errorf("%s contains an unfinished run: continue it with --resume, or start again with --force", t.Dir)
	default:
		return nil, fmt.Errorf("%s contains a build: choose another folder, or overwrite it with --force", t.Dir)
	}
	return func() error { return take(fileio.RunFolder, files, inputs) }, f.CheckFiles(files, inputs)
}

// clearUnlessResumable removes the files of a run that failed before its first checkpoint. It keeps a
// trained model that failed its check.
func clearUnlessResumable(f *fileio.Folder) {
	f.ClearUnless(train.CheckpointFile, train.PreviousFile, FailedModelFile)
}

// listFile lists the runs of the last command that trained several runs in a folder, so that
// train --resume needs no further arguments.
const listFile = ".miplc.runs.json"

// runList is the content of listFile, in the order of the command. On engine xla, the bits of a run
// depend on the other runs of its program.
type runList struct {
	By   string      `json:"written_by"`
	Runs []listedRun `json:"runs"`
}

type listedRun struct {
	RunName
	Spec string `json:"spec"` // as YAML
}

// RunName names one of several runs. Runs with equal settings are averaged.
type RunName struct {
	Name    string `json:"name"`    // of its folder
	Setting string `json:"setting"` // the name without seed and split
}

const listWriter = "miplc train"

// Resumable is what a folder contains for --resume without a spec.
type Resumable struct {
	Search *SearchPlan      // nil: no search
	Spec   string           // path of the spec of a single run; empty: no single run
	Specs  []*language.Spec // of several runs
	Names  []RunName        // of these runs
}

// FindResumable returns what a folder contains: a search, a run or several runs. The error wraps fs.ErrNotExist if it
// contains none of them.
func FindResumable(dir string) (r Resumable, err error) {
	if r.Search, err = readSearch(dir); err != nil || r.Search != nil {
		return r, err
	}
	if state, err := StateOf(dir); err != nil || state != Absent {
		r.Spec = filepath.Join(dir, SpecFile) // its reader reports an unusable folder
		return r, nil
	}
	r.Specs, r.Names, err = readList(dir)
	return r, err
}

// readList returns the specs and names of the runs that listFile in a folder lists. The
// error wraps fs.ErrNotExist if the folder has no list.
func readList(dir string) (specs []*language.Spec, names []RunName, err error) {
	file := filepath.Join(dir, listFile)
	var list runList
	err = fileio.ReadJSON(file, &list)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil, err
	case err == nil && (list.By != listWriter || len(list.Runs) == 0):
		err = fmt.Errorf("%s is not a list of runs", file)
	case err == nil && slices.ContainsFunc(list.Runs, func(r listedRun) bool {
		return r.Name == "" || r.Name != filepath.Base(r.Name) || !filepath.IsLocal(r.Name)
	}):
		err = fmt.Errorf("%s lists runs outside the folder", file)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%w; repeat the whole command with --resume instead", err)
	}
	for _, r := range list.Runs {
		spec, err := language.Parse(filepath.Join(dir, r.Name, SpecFile), []byte(r.Spec))
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %s: %w", file, r.Name, err)
		}
		specs, names = append(specs, spec), append(names, r.RunName)
	}
	return specs, names, nil
}

// writeList writes the list of trials and their specs. It writes nothing for a single trial without a
// name.
func writeList(dir string, trials []*train.Trial, specs []*language.Spec) error {
	list := runList{By: listWriter}
	for i, t := range trials {
		if t.Name == "" {
			return nil
		}
		list.Runs = append(list.Runs, listedRun{RunName{t.Name, t.Setting}, string(specs[i].YAML())})
	}
	return fileio.ReplaceJSON(filepath.Join(dir, listFile), list)
}

// removeList removes the list if none of its runs exists.
func removeList(dir string, trials []*train.Trial) {
	for _, t := range trials {
		if state, err := StateOf(t.Dir); t.Name == "" || err != nil || state != Absent {
			return
		}
	}
	_ = os.Remove(filepath.Join(dir, listFile)) // it may not exist
}

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
