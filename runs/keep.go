// The folder of a run for a trial that is already trained, as experiments keep it with their models.

package runs

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"github.com/miplc/miplc/internal/fileio"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/train"
)

// Keep writes the folder of a run for a trial that is already trained. The folder has the files that Train writes,
// except checkpoints, and replaces an earlier run. If another process writes to it, Keep waits up to a minute.
func (w *Writer) Keep(ctx context.Context, dir string, trial *train.Trial, report *train.Report) (s *Summary,
	err error) {
	t := *trial
	t.Dir = dir
	folder, err := claimWhenFree(ctx, &t, withEngine(t.Program.Spec, report.On))
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	if err = train.WriteMetrics(filepath.Join(dir, train.MetricsFile), report.Metrics); err == nil {
		s, err = w.writeResults(ctx, &t, report)
	}
	if err != nil {
		clearUnlessResumable(folder)
	}
	return s, err
}

// claimWhenFree claims the folder of a trial, to write its run anew.
func claimWhenFree(ctx context.Context, t *train.Trial, spec *language.Spec) (*fileio.Folder, error) {
	const gracePeriod = time.Minute
	for began := time.Now(); ; {
		folders, err := (&Task{Force: true}).claim([]*train.Trial{t}, []*language.Spec{spec}, func() error { return nil })
		if err == nil {
			return folders[0], nil
		}
		if !errors.As(err, new(*fileio.BusyError)) || time.Since(began) > gracePeriod {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}
