// Package libraries has what shared libraries from outside need: downloads with pip or npm to miplc's cache, which
// reject files whose SHA-256 differs, the rule of trust, and NVIDIA's driver.
package libraries

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/miplc/miplc/internal/fileio"
)

// EnvCache is the environment variable with the path of the cache; the default is miplc in the
// user's cache directory.
const EnvCache = "MIPLC_CACHE"

// CacheDir returns the path of the cache: $MIPLC_CACHE, or miplc in the user's cache directory.
func CacheDir() (string, error) {
	if dir := os.Getenv(EnvCache); dir != "" {
		return filepath.Abs(dir)
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", errors.New("no cache directory: neither " + EnvCache + " nor HOME is set")
	}
	return filepath.Join(dir, "miplc"), nil
}

// Via is the tool that downloads a library.
type Via string

// The tools that Install can use.
const (
	ViaAuto Via = "auto" // in the order of the pins
	ViaPip  Via = "pip"
	ViaNpm  Via = "npm"
)

// Pin identifies one shared library inside one published archive.
type Pin struct {
	System   string // GOOS/GOARCH
	Via      Via
	Archive  string // argument of the tool: name==version for pip, name@version for npm
	Member   string // name of the library inside the archive
	Platform string // pip's name of the platform; "" for npm
	Size     int64  // bytes of the library
	SHA256   string // of the library, hex
	Download int    // MB of the archive, for the progress line
}

// Release is a library that is published for several systems.
type Release struct {
	Name   string // name with version
	Pins   []Pin  // in the order to try them
	Remedy string // alternative if no pin can be downloaded
}

// Slot is the path of a library in the cache of a machine.
type Slot struct {
	Release
	System string // GOOS/GOARCH
	Path   string // of the installed library
	run    toolRunner
}

// On returns the slot of a library on this machine.
func (l Release) On(path string) Slot {
	return Slot{Release: l, System: runtime.GOOS + "/" + runtime.GOARCH, Path: path, run: runTool}
}

// fit returns the pins of this system for a tool, in the order to try them.
func (s Slot) fit(via Via) ([]Pin, error) {
	var fit []Pin
	for _, p := range s.Pins {
		if p.System == s.System && (via == ViaAuto || via == "" || via == p.Via) {
			fit = append(fit, p)
		}
	}
	switch {
	case len(fit) > 0:
		return fit, nil
	case via != ViaAuto && via != "":
		return nil, fmt.Errorf("miplc cannot install %s with %s on %s: use --via auto, or %s", s.Name, via, s.System,
			s.Remedy)
	}
	return nil, fmt.Errorf("miplc cannot install %s on %s: %s", s.Name, s.System, s.Remedy)
}

// Check returns an error unless the file in the slot has the SHA-256 of a pin of its system and no
// other user can change it. If no library is pinned for the system, the user put the file there,
// and only the second condition is checked. Check reads the whole file once per process; later
// calls read it again only if it has changed.
func (s Slot) Check() error {
	info, fit, err := s.checkSize()
	if err != nil || fit == nil {
		return err
	}
	sum, err := hashOf(s.Path, info)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(fit, func(p Pin) bool { return strings.EqualFold(p.SHA256, sum) }) {
		return errors.New("damaged: its SHA-256 is not a pinned one")
	}
	return nil
}

// CheckSize does the checks of Check that do not read the file. The error names the file.
func (s Slot) CheckSize() error {
	_, _, err := s.checkSize()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s is missing", s.Path)
	case err != nil:
		return fmt.Errorf("%s: %w", s.Path, err)
	}
	return nil
}

// checkSize returns the pins of the system, nil if there are none.
func (s Slot) checkSize() (fs.FileInfo, []Pin, error) {
	info, err := os.Stat(s.Path)
	if err != nil {
		return nil, nil, err
	}
	if err := CheckTrust(s.Path); err != nil {
		return nil, nil, fmt.Errorf("refused: %w", err)
	}
	fit, err := s.fit(ViaAuto)
	if err != nil {
		return info, nil, nil
	}
	if !slices.ContainsFunc(fit, func(p Pin) bool { return p.Size == info.Size() }) {
		return nil, nil, fmt.Errorf("damaged: %d bytes, none of the pinned libraries has that size", info.Size())
	}
	return info, fit, nil
}

// hashed caches hashes in the process, because one command searches for a library several times.
// They are not cached on disk: whoever can replace the library could replace the cache too.
var hashed sync.Map // by the path and state of a file, func() (string, error)

// hashOf returns the SHA-256 of a file. info describes the file at path now. Where the system has no State, a program
// that sets the modification time can hide a change.
func hashOf(path string, info fs.FileInfo) (string, error) {
	state, _, _ := fileio.State(info)
	key := fmt.Sprintln(path, info.Size(), info.ModTime().UnixNano(), state)
	once, _ := hashed.LoadOrStore(key, sync.OnceValues(func() (string, error) { return fileio.SHA256(path) }))
	return once.(func() (string, error))()
}
