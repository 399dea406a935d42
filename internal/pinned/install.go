package pinned

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/miplc/miplc/internal/outfile"
	"github.com/miplc/miplc/internal/trusted"
)

// InstallOptions are the options of Install. The zero value is usable.
type InstallOptions struct {
	Via      Via       // tool to download with; "" means ViaAuto
	Force    bool      // download again even if a valid library is installed
	Progress io.Writer // one line per step; nil: none
}

// Install downloads the library to its slot. If a valid one is already there, it does not use the
// network. The library gets its final name only after its SHA-256 was checked. Several processes
// may install at the same time: one downloads, the others wait. If ctx ends, Install stops the
// tools and removes temporary files.
func (s Slot) Install(ctx context.Context, o InstallOptions) error {
	if o.Progress == nil {
		o.Progress = io.Discard
	}
	pins, err := s.fit(o.Via)
	if err != nil {
		return err
	}
	if s.Check() == nil && !o.Force {
		return nil
	}
	dir := filepath.Dir(s.Path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("cannot install %s: %w; set %s to a directory that can be written", s.Name, err, EnvCache)
	}
	if err := trusted.Folder(dir); err != nil {
		return fmt.Errorf("cannot install %s: %w; set %s to a directory of your own", s.Name, err, EnvCache)
	}
	unlock, err := s.lock(ctx, filepath.Join(dir, ".lock"), o.Progress)
	if err != nil {
		return fmt.Errorf("cannot install %s: %w", s.Name, err)
	}
	defer unlock()
	if s.Check() == nil && !o.Force {
		return nil
	}
	if err := s.fetchFirst(ctx, dir, pins, o.Progress); err != nil {
		return err
	}
	fmt.Fprintf(o.Progress, "installed %s at %s\n", s.Name, s.Path)
	return nil
}

// lock waits for other processes that install the same library.
func (s Slot) lock(ctx context.Context, path string, progress io.Writer) (unlock func(), err error) {
	l, err := outfile.Lock(path)
	if err != nil {
		return nil, err
	}
	held, err := l.TryLock()
	if err == nil && !held {
		fmt.Fprintf(progress, "another process is installing %s, waiting for it\n", s.Name)
		_, err = l.TryLockContext(ctx, 100*time.Millisecond)
	}
	if err != nil {
		l.Close()
		return nil, fmt.Errorf("waiting for another installation: %w", err)
	}
	return func() { l.Close() }, nil
}

// fetchFirst tries the pins in order. The first file with the pinned contents gets its final name.
func (s Slot) fetchFirst(ctx context.Context, dir string, pins []Pin, progress io.Writer) error {
	// While the lock is held, files with temporary names here belong to processes that have ended.
	if stale, err := filepath.Glob(filepath.Join(dir, ".fetch-*")); err == nil {
		for _, path := range stale {
			os.RemoveAll(path)
		}
	}
	var failed, tools []string
	for _, p := range pins {
		err := s.fetchOne(ctx, dir, p, progress)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("installing %s was interrupted: %w", s.Name, ctx.Err())
		}
		fmt.Fprintf(progress, "%s: %v\n", p.Via, err)
		failed = append(failed, fmt.Sprintf("  %s: %v", p.Via, err))
		tools = append(tools, string(p.Via))
	}
	return fmt.Errorf("cannot install %s:\n%s\ninstall %s and check the network, or %s",
		s.Name, strings.Join(failed, "\n"), strings.Join(tools, " or "), s.Remedy)
}

func (s Slot) fetchOne(ctx context.Context, dir string, p Pin, progress io.Writer) (err error) {
	tmp, err := os.MkdirTemp(dir, ".fetch-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	fmt.Fprintf(progress, "fetching %s with %s (%d MB)\n", s.Name, p.Via, p.Download)
	archive, err := s.download(ctx, p, tmp)
	if err != nil {
		return err
	}
	unpacked := filepath.Join(tmp, "library")
	sum, err := unpack(archive, p, unpacked)
	if err != nil {
		return fmt.Errorf("the archive %s cannot be unpacked: %w", filepath.Base(archive), err)
	}
	if sum != p.SHA256 {
		return fmt.Errorf("the library in %s has SHA-256 %s, expected %s: it is not used", filepath.Base(archive), sum, p.SHA256)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := os.Rename(unpacked, s.Path); err != nil {
		return errors.New("cannot move the library into the cache: " + err.Error())
	}
	return s.Check()
}
