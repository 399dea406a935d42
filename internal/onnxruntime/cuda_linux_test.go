//go:build cgo && (amd64 || arm64)

// What the CUDA provider needs, with a driver that the tests play.

package onnxruntime

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/miplc/miplc/internal/libraries"
)

// What the CUDA provider lacks on a machine is said before onnxruntime loads it. Compiled stand-ins take
// the place of NVIDIA's libraries.
func TestPrepareCUDA(t *testing.T) {
	compile := func(path, source string, flags ...string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command("cc", append(flags, "-shared", "-fPIC", "-o", path, "-x", "c",
			source)...).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	dir := t.TempDir()
	compile(filepath.Join(dir, "driver", "libcuda.so.1"), "../../internal/libraries/testdata/driver.c", "-DGPUS=1")
	compile(filepath.Join(dir, "old", "libcuda.so.1"), "../../internal/libraries/testdata/driver.c", "-DGPUS=1",
		"-DCUDA=12080")
	core, provider := filepath.Join(dir, "ort", "libonnxruntime.so"), filepath.Join(dir, "cuda", "provider.so")
	for _, step := range []struct {
		driver, says string
		mend         func()
	}{
		{"none", "the NVIDIA driver is not installed (libcuda.so.1 not found); install the driver of the GPU, version 580 " +
			"or later", nil},
		{"old", "the NVIDIA driver supports CUDA 12.8, but 13.0 is needed: update it to version 580 or later", nil},
		{"driver", "was not built with CUDA", nil},
		{"driver", "libcudart.so.13 is missing or damaged", func() {
			compile(filepath.Join(filepath.Dir(core), sharedProviders), "/dev/null")
		}},
		{"driver", "libcudnn.so.9 is missing or damaged", func() {
			for _, name := range cudaLibraries[:len(cudaLibraries)-1] {
				compile(filepath.Join(filepath.Dir(provider), name), "/dev/null")
			}
		}},
		{"driver", "install the Python package nvidia-cudnn-cu13", nil},
		{"driver", "", func() { compile(filepath.Join(dir, "driver", "libcudnn.so.9"), "/dev/null") }},
	} {
		if step.mend != nil {
			step.mend()
		}
		t.Setenv("LD_LIBRARY_PATH", filepath.Join(dir, step.driver))
		if _, err := libraries.FirstGPU(); step.driver == "none" && err == nil {
			continue // the driver of this machine
		}
		err := prepareCUDA(core, provider)
		if err == nil != (step.says == "") || err != nil && !strings.Contains(err.Error(), step.says) {
			t.Errorf("expected %q: %v", step.says, err)
		}
	}
}
