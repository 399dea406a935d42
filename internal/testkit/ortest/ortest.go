// Package ortest provides the onnxruntime library for tests and installs it if it is missing.
package ortest

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/miplc/miplc/internal/pinned"
	"github.com/miplc/miplc/runtime/ortlib"
)

var library = sync.OnceValues(func() (ortlib.Library, error) {
	lib, err := ortlib.Find("")
	if err == nil {
		return lib, nil
	}
	if named := os.Getenv(ortlib.EnvLibrary) + os.Getenv(ortlib.EnvLibraryOwn); named != "" {
		return ortlib.Library{}, err
	}
	// Shorter than go test's limit of ten minutes, which would print stacks instead of the reason.
	ctx, cancel := context.WithTimeout(context.Background(), 9*time.Minute)
	defer cancel()
	lib, installErr := ortlib.Install(ctx, pinned.InstallOptions{Progress: os.Stderr})
	if installErr != nil {
		return ortlib.Library{}, fmt.Errorf("%w\n%w", err, installErr)
	}
	return lib, nil
})

// Find returns the library and installs it if it is missing. When packages are tested in parallel,
// one installs it and the others wait.
func Find() (ortlib.Library, error) { return library() }

// Library returns the path of the library. Tests that need onnxruntime must not be skipped, so the
// test fails with advice if the library can be neither found nor installed.
func Library(t testing.TB) string {
	t.Helper()
	lib, err := library()
	if err != nil {
		t.Fatalf("this test needs onnxruntime: %v", err)
	}
	return lib.Path
}
