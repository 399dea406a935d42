// Package onnxruntime finds, installs and starts onnxruntime, which a process can load only once, and opens sessions on
// its devices. All code of miplc that uses onnxruntime starts it here.
package onnxruntime

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/miplc/miplc/internal/fileio"
	"github.com/miplc/miplc/internal/libraries"
)

// ErrNoCgo reports a binary built without cgo, which cannot call onnxruntime.
var ErrNoCgo = errors.New("this program was built with CGO_ENABLED=0 and cannot load onnxruntime: build it with " +
	"cgo, or use the onnx-go back end")

// Available reports whether this binary can call onnxruntime.
func Available() bool { return available }

var env struct {
	sync.Mutex
	started bool
	lib     Library
	copies  map[string]bool // paths of copies of lib
}

// Start finds the library (path "" searches, see FindLibrary) and loads it into the process. Later
// calls return the loaded library, so a command that got a path starts that library first, and other code
// starts "". A call with the path of a library with other contents fails, because only one can be loaded; a
// copy of the loaded library is accepted. If the program around miplc has already started onnxruntime, that library is
// used.
func Start(path string) (Library, error) {
	env.Lock()
	defer env.Unlock()
	if !env.started {
		lib, err := startLocked(path)
		if err == nil {
			env.started, env.lib = true, lib
		}
		return lib, err
	}
	if path == "" || env.lib.Path == "" {
		return env.lib, nil
	}
	lib, err := FindLibrary(path)
	if err != nil {
		return Library{}, err
	}
	same, err := sameFile(lib.Path, env.lib.Path)
	if err == nil && !same {
		err = fmt.Errorf("onnxruntime is already loaded from %s; a process cannot load a second one from %s",
			env.lib.Path, lib.Path)
	}
	if err != nil {
		return Library{}, err
	}
	return env.lib, nil
}

// sameFile reports whether two paths name the same file or copies of it. A plan of shards copies
// the library, and the process that made the plan may have loaded the original.
func sameFile(a, b string) (bool, error) {
	if a == b || env.copies[a] {
		return true, nil
	}
	hashA, err := fileio.SHA256(a)
	if err != nil {
		return false, err
	}
	hashB, err := fileio.SHA256(b)
	if err != nil || hashA != hashB {
		return false, err
	}
	if env.copies == nil {
		env.copies = map[string]bool{}
	}
	env.copies[a] = true
	return true, nil
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

// loadedPath returns the path of the library that miplc has loaded, or "".
func loadedPath() string {
	env.Lock()
	defer env.Unlock()
	return env.lib.Path
}

// startLocked loads the library, unless the program around miplc has done that.
func startLocked(path string) (lib Library, err error) {
	if !available {
		return lib, ErrNoCgo
	}
	if !running() {
		if lib, err = here().find(path, loadExplained); err != nil {
			return lib, err
		}
	}
	lib.Version = loadedVersion()
	return lib, nil
}

// loadExplained loads a library. It explains errors of the Go binding, for the end of a sentence about the library.
func loadExplained(path string) error {
	err := load(path)
	if err == nil {
		return nil
	}
	message := err.Error()
	// The binding requests one version of the C API. A library that does not have it returns null, which
	// the binding reports as code 2.
	if strings.Contains(message, "Error setting ORT API base: 2") {
		return fmt.Errorf("is too old: miplc needs version %s or later", minVersion)
	}
	if strings.Contains(message, "Error looking up OrtGetApiBase") {
		return errors.New("is not onnxruntime: it has no function OrtGetApiBase")
	}
	if _, loader, ok := strings.Cut(message, "Error loading ONNX shared library \""+path+"\": "); ok {
		return libraries.LoadError(path, loader)
	}
	return libraries.LoadError(path, message)
}

// Tensor is an input or an output of a model, row-major.
type Tensor struct {
	Shape  []int
	Floats []float32
	Ints   []int64 // instead of Floats
}

// Run runs the content of an ONNX file once, see OpenGraph.
func Run(content []byte, in map[string]Tensor) (map[string]Tensor, error) {
	g, err := OpenGraph(content)
	if err != nil {
		return nil, err
	}
	defer g.Close()
	return g.Run(in)
}
