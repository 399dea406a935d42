// The folder of a run for a trial that is already trained, as experiments keep it with their models.

package runs

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/miplc/miplc/export"
	"github.com/miplc/miplc/internal/fileio"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/train"
)

// Keep writes the folder of a run for a trial that is already trained. The folder has the files that
// Train writes, except checkpoints. Several processes may keep runs in the same dir: Keep writes to the folder
// temporary, which no other process uses, and then moves its files to dir. temporary must be on the
// same file system. An existing run in dir is replaced unless it has the same model. A model that fails its check is
// moved, too, with the names that Train gives it.
func (w *Writer) Keep(ctx context.Context, dir, temporary string, trial *train.Trial,
	report *train.Report) (*Summary, error) {
	t := *trial
	t.Dir = temporary
	folders, err := (&Task{Force: true}).claim([]*train.Trial{&t}, []*language.Spec{withEngine(t.Program.Spec, report.On)},
		func() error { return nil })
	if err != nil {
		return nil, err
	}
	defer folders[0].Close()
	var s *Summary
	if err = train.WriteMetrics(filepath.Join(temporary, train.MetricsFile), report.Metrics); err == nil {
		s, err = w.writeResults(ctx, &t, report)
	}
	if failed := (*export.FailedCheck)(nil); errors.As(err, &failed) {
		failed.Path, failed.Kept = ModelPath(dir), filepath.Join(dir, FailedModelFile)
		return nil, errors.Join(err, moveRun(ctx, temporary, dir, nil))
	}
	if err != nil {
		clearUnlessResumable(folders[0])
		return nil, err
	}
	return s, moveRun(ctx, temporary, dir, s)
}

// moveRun moves the run in the folder from to dir. s is its summary, nil if its model failed the check. moveRun waits
// for other processes that do the same.
func moveRun(ctx context.Context, from, dir string, s *Summary) error {
	to, err := lockWhenFree(ctx, dir)
	if err != nil {
		return err
	}
	defer to.Close()
	if err := to.Mark.CheckKind(dir, fileio.RunFolder); err != nil {
		return err
	}
	if state, err := StateOf(dir); err != nil || state == Finished && s != nil && sameRun(dir, s) {
		return err
	}
	files := runFiles()
	if err := to.Restart(fileio.RunFolder, files, nil); err != nil {
		return err
	}
	for _, name := range slices.Backward(files) { // the summary last, because it marks a finished run
		source, target := filepath.Join(from, name), filepath.Join(dir, name)
		if _, err := os.Stat(source); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(target), 0o777); err != nil {
			return err
		}
		if err := os.Rename(source, target); err != nil {
			return err
		}
	}
	return nil
}

// sameRun reports whether a folder has all files of a run with the same spec and the same model.
func sameRun(dir string, s *Summary) bool {
	there, err := ReadSummary(dir)
	if err != nil || there.SpecSHA256 != s.SpecSHA256 || slices.ContainsFunc(there.Files, func(name string) bool {
		_, err := os.Stat(filepath.Join(dir, name))
		return err != nil
	}) {
		return false
	}
	sum, err := fileio.SHA256(ModelPath(dir))
	return err == nil && sum == s.ModelSHA256
}

// lockWhenFree locks a folder. It waits up to a minute while another process has the lock, because
// moving files is fast.
func lockWhenFree(ctx context.Context, dir string) (*fileio.Folder, error) {
	const gracePeriod = time.Minute
	began := time.Now()
	for {
		f, err := fileio.LockFolder(dir)
		if busy := (*fileio.BusyError)(nil); !errors.As(err, &busy) || time.Since(began) > gracePeriod {
			return f, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}
