// Package enginetest provides the libraries of engines for tests, onnxruntime and XLA plugins, installs what is
// missing, and runs ONNX files in both back ends.
package enginetest

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/miplc/miplc/internal/libraries"
	"github.com/miplc/miplc/internal/onnxruntime"
)

var library = sync.OnceValues(func() (onnxruntime.Library, error) {
	lib, err := find()
	if err == nil && onnxruntime.Available() {
		return onnxruntime.Start(lib.Path)
	}
	return lib, err
})

func find() (onnxruntime.Library, error) {
	lib, err := onnxruntime.FindLibrary("")
	if err == nil {
		return lib, nil
	}
	if named := os.Getenv(onnxruntime.EnvLibrary) + os.Getenv(onnxruntime.EnvLibraryOwn); named != "" {
		return onnxruntime.Library{}, err
	}
	// Shorter than go test's limit of ten minutes, which would print stacks instead of the reason.
	ctx, cancel := context.WithTimeout(context.Background(), 9*time.Minute)
	defer cancel()
	lib, installErr := onnxruntime.InstallLibrary(ctx, libraries.InstallOptions{Progress: os.Stderr})
	if installErr != nil {
		return onnxruntime.Library{}, fmt.Errorf("%w\n%w", err, installErr)
	}
	return lib, nil
}

// FindLibrary starts the library, and installs it if it is missing. When packages are tested in parallel,
// one installs it and the others wait.
func FindLibrary() (onnxruntime.Library, error) { return library() }

// Library starts the library and returns its path. Tests that need onnxruntime must not be skipped, so the
// test fails with advice if the library can be neither found nor installed.
func Library(t testing.TB) string {
	t.Helper()
	lib, err := library()
	if err != nil {
		t.Fatalf("this test needs onnxruntime: %v", err)
	}
	return lib.Path
}
