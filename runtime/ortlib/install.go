package ortlib

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// InstallOptions directs Install. The zero value is fit for use.
type InstallOptions struct {
	Via      Via       // tool to fetch with; "" means ViaAuto
	Force    bool      // fetch again even when a good library is installed
	Progress io.Writer // one line a step; nil: none
}

// Install puts the pinned onnxruntime into the cache and returns it. A good
// library that is already there is returned without touching the network.
// The library gets its final name only after its SHA-256 was checked, and any
// number of processes may install at the same time: one fetches, the others
// wait for it. When ctx ends the tools are stopped and nothing is left behind.
func Install(ctx context.Context, o InstallOptions) (Library, error) {
	return installer{places: here(), run: runTool}.install(ctx, o)
}

// installer is Install with the machine and the tools made explicit.
type installer struct {
	places
	run toolRunner
}

func (in installer) install(ctx context.Context, o InstallOptions) (Library, error) {
	if o.Progress == nil {
		o.Progress = io.Discard
	}
	if in.cache == "" {
		return Library{}, fmt.Errorf("cannot install onnxruntime: %w; set %s to a directory", in.cacheErr, EnvCache)
	}
	pins, err := in.pinsFor(o.Via)
	if err != nil {
		return Library{}, err
	}
	if lib, ok := in.installed(); ok && !o.Force {
		return lib, nil
	}
	dir := filepath.Dir(in.cachePath())
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return Library{}, fmt.Errorf("cannot install onnxruntime: %w; set %s to a directory that can be written", err, EnvCache)
	}
	unlock, err := lock(ctx, filepath.Join(dir, ".lock"), func() {
		fmt.Fprintln(o.Progress, "another process is installing onnxruntime, waiting for it")
	})
	if err != nil {
		return Library{}, fmt.Errorf("cannot install onnxruntime: %w", err)
	}
	defer unlock()
	if lib, ok := in.installed(); ok && !o.Force {
		return lib, nil
	}
	if err := in.fetchFirst(ctx, dir, pins, o.Progress); err != nil {
		return Library{}, err
	}
	lib, ok := in.installed()
	if !ok {
		return Library{}, fmt.Errorf("the library installed at %s does not pass inspection: run `miplc doctor`", in.cachePath())
	}
	fmt.Fprintf(o.Progress, "installed onnxruntime %s at %s\n", lib.Version, lib.Path)
	return lib, nil
}

// installed returns the cached library if it is whole, by its SHA-256.
func (in installer) installed() (Library, bool) {
	c := in.inspectAt(in.cachePath(), FromCache, true)
	return Library{Path: c.Path, Version: c.Version, Origin: FromCache}, c.Verdict == Usable
}

// fetchFirst tries the pins in order; the first that yields the pinned bytes
// is moved to its final name.
func (in installer) fetchFirst(ctx context.Context, dir string, pins []pin, progress io.Writer) error {
	// Holding the lock, whatever lies here under a temporary name was left by
	// a process that died.
	if stale, err := filepath.Glob(filepath.Join(dir, ".fetch-*")); err == nil {
		for _, path := range stale {
			os.RemoveAll(path)
		}
	}
	var failed []string
	for _, p := range pins {
		err := in.fetchOne(ctx, dir, p, progress)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("installing onnxruntime was interrupted: %w", ctx.Err())
		}
		fmt.Fprintf(progress, "%s: %v\n", p.via, err)
		failed = append(failed, fmt.Sprintf("  %s: %v", p.via, err))
	}
	return fmt.Errorf("cannot install onnxruntime %s:\n%s\ninstall npm or Python's pip and check the network, or get a library of version %s or later yourself and set %s",
		Version, strings.Join(failed, "\n"), MinVersion, EnvLibrary)
}

func (in installer) fetchOne(ctx context.Context, dir string, p pin, progress io.Writer) (err error) {
	tmp, err := os.MkdirTemp(dir, ".fetch-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	fmt.Fprintf(progress, "fetching onnxruntime %s with %s (%d MB)\n", Version, p.via, p.download)
	archive, err := in.download(ctx, p, tmp)
	if err != nil {
		return err
	}
	unpacked := filepath.Join(tmp, "library")
	sum, err := unpack(archive, p, unpacked)
	if err != nil {
		return fmt.Errorf("the archive %s cannot be unpacked: %w", filepath.Base(archive), err)
	}
	if sum != p.sha256 {
		return fmt.Errorf("the library in %s has SHA-256 %s, expected %s: it is not used", filepath.Base(archive), sum, p.sha256)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := os.Rename(unpacked, in.cachePath()); err != nil {
		return errors.New("cannot move the library into the cache: " + err.Error())
	}
	return nil
}
