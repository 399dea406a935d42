// Installation of libraries in the cache.

package libraries

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

// Install downloads the library to its slot, see InstallAll.
func (s Slot) Install(ctx context.Context, o InstallOptions) error {
	return InstallAll(ctx, []Slot{s}, o)
}

// InstallAll downloads several libraries to their slots in one folder. If valid ones are already there, it does not
// use the network. A library gets its final name only after its SHA-256 was checked. An archive is downloaded once
// for all its libraries, which must follow each other in slots. Several processes may install at the same time: one
// downloads, the others wait. If ctx ends, InstallAll stops the tools and removes temporary files; the next call
// downloads only the missing libraries.
func InstallAll(ctx context.Context, slots []Slot, o InstallOptions) error {
	if o.Progress == nil {
		o.Progress = io.Discard
	}
	missing, err := o.missing(slots)
	if err != nil || len(missing) == 0 {
		return err
	}
	unlock, err := slots[0].claim(ctx, o.Progress)
	if err != nil {
		return err
	}
	defer unlock()
	if missing, err = o.missing(slots); err != nil { // another process may have installed them
		return err
	}
	var a archive
	defer func() { os.RemoveAll(a.folder) }()
	for _, s := range missing {
		if err := s.fetchFirst(ctx, &a, o); err != nil {
			return err
		}
		fmt.Fprintf(o.Progress, "installed %s at %s\n", s.Name, s.Path)
	}
	return nil
}

// missing returns the slots that have no valid library, or all with Force.
func (o InstallOptions) missing(slots []Slot) (list []Slot, err error) {
	for _, s := range slots {
		if _, err := s.fit(o.Via); err != nil {
			return nil, err
		}
		if o.Force || s.Check() != nil {
			list = append(list, s)
		}
	}
	return list, nil
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
	l, err := fileio.NewLock(filepath.Join(dir, ".lock"))
	if err != nil {
		return nil, fmt.Errorf("cannot install %s: %w", s.Name, err)
	}
	held, err := l.TryLock()
	if err == nil && !held {
		fmt.Fprintf(progress, "another process is installing %s, waiting for it\n", s.Name)
		_, err = l.TryLockContext(ctx, 100*time.Millisecond)
	}
	if err != nil {
		l.Close()
		return nil, fmt.Errorf("cannot install %s: waiting for another installation: %w", s.Name, err)
	}
	// While the lock is held, files with temporary names here belong to processes that have ended.
	for _, path := range fileio.Glob(dir, ".fetch-*") {
		os.RemoveAll(path)
	}
	return func() { l.Close() }, nil
}

// fetchFirst tries the pins in order. The first file with the pinned contents gets its final name.
func (s Slot) fetchFirst(ctx context.Context, a *archive, o InstallOptions) error {
	pins, err := s.fit(o.Via)
	if err != nil {
		return err
	}
	var failed, tools []string
	for _, p := range pins {
		err := s.fetch(ctx, p, a, o.Progress)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("installing %s was interrupted: %w", s.Name, ctx.Err())
		}
		fmt.Fprintf(o.Progress, "%s: %v\n", p.Via, err)
		failed = append(failed, fmt.Sprintf("  %s: %v", p.Via, err))
		tools = append(tools, string(p.Via))
	}
	return fmt.Errorf("cannot install %s:\n%s\ninstall %s and check the network and the space on the disk, or %s",
		s.Name, strings.Join(failed, "\n"), strings.Join(tools, " or "), s.Remedy)
}

// archive is a downloaded archive, in a temporary folder.
type archive struct{ name, path, folder string }

// fetch downloads the archive of a pin unless it is a, unpacks the library, checks it and gives it its name.
func (s Slot) fetch(ctx context.Context, p Pin, a *archive, progress io.Writer) (err error) {
	if a.name != p.Archive {
		os.RemoveAll(a.folder)
		*a = archive{}
		if a.folder, err = os.MkdirTemp(filepath.Dir(s.Path), ".fetch-"); err != nil {
			return err
		}
		fmt.Fprintf(progress, "fetching %s with %s (%d MB)\n", s.Name, p.Via, p.Download)
		if a.path, err = s.download(ctx, p, a.folder); err != nil {
			return err
		}
		a.name = p.Archive
	}
	unpacked, file := filepath.Join(a.folder, "library"), filepath.Base(a.path)
	sum, err := unpack(a.path, p, unpacked)
	if err != nil {
		return fmt.Errorf("the archive %s cannot be unpacked: %w", file, err)
	}
	if sum != p.SHA256 {
		return fmt.Errorf("the library in %s has SHA-256 %s, expected %s: it is not used", file, sum, p.SHA256)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := os.Rename(unpacked, s.Path); err != nil {
		return errors.New("cannot move the library into the cache: " + err.Error())
	}
	return s.Check()
}
