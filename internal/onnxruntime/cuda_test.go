// The files of the CUDA provider are found.

package onnxruntime

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/miplc/miplc/internal/libraries"
)

// The pinned files of the CUDA provider include all libraries that it needs, with those of an archive
// next to each other.
func TestCUDAFiles(t *testing.T) {
	var archives []string
	for _, p := range cudaFiles {
		if len(p.SHA256) != 64 || p.Size < 1 || p.Platform == "" {
			t.Errorf("%+v: broken", p)
		}
		if len(archives) == 0 || archives[len(archives)-1] != p.Archive {
			archives = append(archives, p.Archive)
		}
	}
	if slices.Sort(archives); len(slices.Compact(slices.Clone(archives))) != len(archives) {
		t.Errorf("the files of an archive are not next to each other: %v", archives)
	}
	for _, name := range append([]string{"libonnxruntime_providers_cuda.so", sharedProviders}, cudaLibraries...) {
		if !slices.ContainsFunc(cudaFiles, func(p libraries.Pin) bool { return path.Base(p.Member) == name }) {
			t.Errorf("no archive has %s", name)
		}
	}
	if name := cudaPackage("libcudnn.so.9"); name != "nvidia-cudnn-cu13" {
		t.Errorf("libcudnn is in %s", name)
	}
}

// An installed provider is found if all its files are there, and its onnxruntime library comes before
// the one for CPUs.
func TestFindCUDA(t *testing.T) {
	m := newMachine(t)
	t.Setenv(libraries.EnvCache, m.path("cache"))
	t.Setenv(EnvProvider+"CUDA", "")
	if found, err := findProvider(CUDA); found != "" || err != nil {
		t.Errorf("an empty cache: %q, %v", found, err)
	}
	slots, _ := providerSlots(m.path("cache"), CUDA)
	for _, s := range slots {
		sparse(t, s.Path, s.Pins[0].Size)
	}
	found, err := findProvider(CUDA)
	if err != nil || filepath.Base(found) != "libonnxruntime_providers_cuda.so" {
		t.Errorf("an installed provider: %q, %v", found, err)
	}
	if c := m.places().slots(); len(c) != 2 || filepath.Dir(c[0].Path) != filepath.Dir(found) {
		t.Errorf("the onnxruntime libraries of the cache are %v", c)
	}
	// The contents of that library are checked when it is searched for.
	_, err = m.places().find("", anyLibrary)
	if err == nil || !strings.Contains(err.Error(), "its SHA-256 is not a pinned one; `miplc runtime install cuda` "+
		"replaces it") {
		t.Errorf("a damaged onnxruntime library: %v", err)
	}
	if err := os.Remove(slots[len(slots)-1].Path); err != nil {
		t.Fatal(err)
	}
	if _, err := findProvider(CUDA); err == nil || !strings.Contains(err.Error(),
		"is missing; `miplc runtime install cuda` completes it") {
		t.Errorf("a missing file: %v", err)
	}
}

// sparse makes a file of zeros that takes no space.
func sparse(t *testing.T, path string, size int64) {
	t.Helper()
	f, err := os.Create(path)
	if os.IsNotExist(err) {
		if err = os.MkdirAll(filepath.Dir(path), 0o755); err == nil {
			f, err = os.Create(path)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(size); err != nil {
		t.Fatal(err)
	}
}
