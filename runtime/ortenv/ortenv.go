// Package ortenv starts onnxruntime, which a process can load only once.
// Everything in miplc that runs ONNX graphs through onnxruntime starts here.
package ortenv

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/miplc/miplc/runtime/ortlib"
)

// ErrNoCgo reports a binary built without cgo, which cannot call onnxruntime.
var ErrNoCgo = errors.New("this program was built with CGO_ENABLED=0 and cannot load onnxruntime: build it with cgo, or use the onnx-go back end")

// Available reports whether this binary can call onnxruntime at all.
func Available() bool { return available }

var env struct {
	sync.Mutex
	started bool
	lib     ortlib.Library
}

// Start finds the library (path "" searches, see ortlib.Find) and loads it into
// the process. Later calls return the library that is loaded already; a call
// that names another one fails, since only one can be loaded. When the program
// around miplc has started onnxruntime itself, that one is used.
func Start(path string) (ortlib.Library, error) {
	env.Lock()
	defer env.Unlock()
	if !env.started {
		if err := startLocked(path); err != nil {
			return ortlib.Library{}, err
		}
		env.started = true
		return env.lib, nil
	}
	if path == "" || env.lib.Path == "" {
		return env.lib, nil
	}
	lib, err := ortlib.Find(ortlib.Options{Path: path})
	if err != nil {
		return ortlib.Library{}, err
	}
	if lib.Path != env.lib.Path {
		return ortlib.Library{}, fmt.Errorf("onnxruntime is already loaded from %s; a process cannot load a second one from %s", env.lib.Path, lib.Path)
	}
	return env.lib, nil
}

// Loaded returns the version of the onnxruntime library in the process, or "" if none is
// loaded.
func Loaded() string {
	env.Lock()
	defer env.Unlock()
	if !running() {
		return ""
	}
	return loadedVersion()
}

func startLocked(path string) error {
	if !available {
		return ErrNoCgo
	}
	if running() {
		env.lib = ortlib.Library{Version: loadedVersion()}
		return nil
	}
	lib, err := ortlib.Find(ortlib.Options{Path: path})
	if err != nil {
		return err
	}
	if err := load(lib.Path); err != nil {
		// The binding asks the library for one version of the C API; a library
		// that does not know it answers with null, which shows as code 2.
		if strings.Contains(err.Error(), "Error setting ORT API base: 2") {
			return fmt.Errorf("the onnxruntime library %s is too old: miplc needs version %s or later; %s", lib.Path, ortlib.MinVersion, ortlib.Remedy)
		}
		return fmt.Errorf("cannot load the onnxruntime library %s: %w; %s", lib.Path, err, ortlib.Remedy)
	}
	lib.Version = loadedVersion()
	env.lib = lib
	return nil
}
