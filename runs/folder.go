// Who may write to the folder of a run: it is locked during training, and other files in it are never overwritten.

package runs

import (
	"fmt"
	"slices"

	"github.com/miplc/miplc/internal/fileio"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/train"
)

// claim locks the folders of trials and writes the specs and splits of the runs. If one of the
// folders must not be overwritten, claim changes none. The caller must close the folders.
func (o *Task) claim(trials []*train.Trial, specs []*language.Spec) (folders []*fileio.Folder, err error) {
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
	for i, t := range trials {
		if err := claims[i](); err != nil {
			return folders, err
		}
		claimed++
		if err := writeInputs(t, specs[i]); err != nil {
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
	files, inputs := runFiles(), inputFiles(t.Program.Spec, o.Data)
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
