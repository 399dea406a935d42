//go:build cgo

// Loading of what the CUDA provider needs.

package onnxruntime

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/miplc/miplc/internal/native"
)

// prepareCUDA checks what the execution provider for CUDA needs and loads its libraries, because
// onnxruntime reports a missing one as a file that cannot be opened, or ends the process. loaded is the
// onnxruntime library of the process.
func prepareCUDA(loaded, provider string) error {
	gpu, err := native.FirstGPU()
	if err != nil {
		return fmt.Errorf("%w; install the driver of the GPU, version %s or later", err, minDriver)
	}
	if gpu.CUDA < minCUDA {
		return fmt.Errorf("the NVIDIA driver supports CUDA %s, but %s is needed: update it to version %s or later",
			cudaVersion(gpu.CUDA), cudaVersion(minCUDA), minDriver)
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(loaded), sharedProviders)); err != nil {
		return fmt.Errorf("the onnxruntime library %s was not built with CUDA: name no library, so that miplc takes the "+
			"one that `miplc runtime install cuda` installed", loaded)
	}
	folder := filepath.Dir(provider)
	for _, name := range cudaLibraries {
		path := filepath.Join(folder, name)
		if _, err := os.Stat(path); err != nil {
			path = name
		}
		if err := native.LoadGlobal(path); err != nil {
			return fmt.Errorf("%s is missing or damaged (%w): `miplc runtime install cuda` installs it, or install the "+
				"Python package %s and name its folder in LD_LIBRARY_PATH",
				name, err, cudaPackage(name))
		}
	}
	return nil
}

// cudaVersion writes 13020 as 13.2.
func cudaVersion(v int) string { return fmt.Sprintf("%d.%d", v/1000, v%1000/10) }
