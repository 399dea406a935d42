// Installation of libraries in the cache.

package native

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/miplc/miplc/internal/fileio"
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
	unlock, err := s.claim(ctx, o.Progress)
	if err != nil {
		return err
	}
	defer unlock()
	if s.Check() == nil && !o.Force {
		return nil
	}
	if err := s.fetchFirst(ctx, pins, o.Progress); err != nil {
		return err
	}
	fmt.Fprintf(o.Progress, "installed %s at %s\n", s.Name, s.Path)
	return nil
}

// InstallAll installs several libraries in one folder, each like Install. It downloads an archive once
// for all its libraries, which must follow each other in slots. If an installation is interrupted, the
// next one downloads only the missing libraries.
func InstallAll(ctx context.Context, slots []Slot, o InstallOptions) error {
	if o.Progress == nil {
		o.Progress = io.Discard
	}
	for _, s := range slots {
		if _, err := s.fit(o.Via); err != nil {
			return err
		}
	}
	unlock, err := slots[0].claim(ctx, o.Progress)
	if err != nil {
		return err
	}
	defer unlock()
	var tmp, archive, name string
	defer func() { os.RemoveAll(tmp) }()
	for _, s := range slots {
		if s.Check() == nil && !o.Force {
			continue
		}
		p := s.Pins[0]
		if p.Archive != name {
			os.RemoveAll(tmp)
			if tmp, err = os.MkdirTemp(filepath.Dir(s.Path), ".fetch-"); err != nil {
				return err
			}
			if archive, err = s.fetch(ctx, p, tmp, o.Progress); err != nil {
				return fmt.Errorf("cannot install %s: %w; check the network and the space on the disk, or %s", s.Name, err,
					s.Remedy)
			}
			name = p.Archive
		}
		if err := s.place(ctx, archive, p, tmp); err != nil {
			return fmt.Errorf("cannot install %s: %w", s.Name, err)
		}
		fmt.Fprintf(o.Progress, "installed %s\n", s.Path)
	}
	return nil
}

// claim makes the folder of the library, waits for other installations there and removes files that
// they left.
func (s Slot) claim(ctx context.Context, progress io.Writer) (unlock func(), err error) {
	dir := filepath.Dir(s.Path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("cannot install %s: %w; set %s to a directory that can be written", s.Name, err, EnvCache)
	}
	if err := checkFolderTrust(dir); err != nil {
		return nil, fmt.Errorf("cannot install %s: %w; set %s to a directory of your own", s.Name, err, EnvCache)
	}
	if unlock, err = s.lock(ctx, filepath.Join(dir, ".lock"), progress); err != nil {
		return nil, fmt.Errorf("cannot install %s: %w", s.Name, err)
	}
	// While the lock is held, files with temporary names here belong to processes that have ended.
	if stale, err := filepath.Glob(filepath.Join(dir, ".fetch-*")); err == nil {
		for _, path := range stale {
			os.RemoveAll(path)
		}
	}
	return unlock, nil
}

// lock waits for other processes that install the same library.
func (s Slot) lock(ctx context.Context, path string, progress io.Writer) (unlock func(), err error) {
	l, err := fileio.NewLock(path)
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
func (s Slot) fetchFirst(ctx context.Context, pins []Pin, progress io.Writer) error {
	var failed, tools []string
	for _, p := range pins {
		err := s.fetchOne(ctx, p, progress)
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

func (s Slot) fetchOne(ctx context.Context, p Pin, progress io.Writer) (err error) {
	tmp, err := os.MkdirTemp(filepath.Dir(s.Path), ".fetch-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	archive, err := s.fetch(ctx, p, tmp, progress)
	if err != nil {
		return err
	}
	return s.place(ctx, archive, p, tmp)
}

// fetch downloads the archive of a pin to a folder.
func (s Slot) fetch(ctx context.Context, p Pin, tmp string, progress io.Writer) (archive string, err error) {
	fmt.Fprintf(progress, "fetching %s with %s (%d MB)\n", s.Name, p.Via, p.Download)
	return s.download(ctx, p, tmp)
}

// place unpacks a library, checks it and gives it its name.
func (s Slot) place(ctx context.Context, archive string, p Pin, tmp string) error {
	unpacked := filepath.Join(tmp, "library")
	sum, err := unpack(archive, p, unpacked)
	if err != nil {
		return fmt.Errorf("the archive %s cannot be unpacked: %w", filepath.Base(archive), err)
	}
	if sum != p.SHA256 {
		return fmt.Errorf("the library in %s has SHA-256 %s, expected %s: it is not used", filepath.Base(archive), sum,
			p.SHA256)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := os.Rename(unpacked, s.Path); err != nil {
		return errors.New("cannot move the library into the cache: " + err.Error())
	}
	return s.Check()
}
