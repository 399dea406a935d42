// Libraries of providers are found.

package onnxruntime

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/miplc/miplc/internal/libraries"
)

func TestFindProvider(t *testing.T) {
	cache, named := t.TempDir(), filepath.Join(t.TempDir(), "own.so")
	t.Setenv(libraries.EnvCache, cache)
	t.Setenv(EnvProvider+"WEBGPU", "")
	if path, err := findProvider(WebGPU); path != "" || err != nil {
		t.Errorf("found %q, %v in an empty cache", path, err)
	}
	if path, err := findProvider("cuda"); path != "" || err != nil {
		t.Errorf("found %q, %v of a provider without a pin", path, err)
	}

	slots, _ := providerSlots(cache, WebGPU)
	slot := slots[0]
	if err := os.MkdirAll(filepath.Dir(slot.Path), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{slot.Path, named} {
		if err := os.WriteFile(path, []byte("not the pinned bytes"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if path, err := findProvider(WebGPU); err == nil ||
		!strings.Contains(err.Error(), "miplc runtime install webgpu --force") {
		t.Errorf("found %q, %v in a damaged cache", path, err)
	}

	t.Setenv(EnvProvider+"WEBGPU", named)
	if path, err := findProvider(WebGPU); path != named || err != nil {
		t.Errorf("found %q, %v, the environment names %s", path, err, named)
	}
	t.Setenv(EnvProvider+"WEBGPU", named+".missing")
	if path, err := findProvider(WebGPU); err == nil || !strings.Contains(err.Error(), EnvProvider+"WEBGPU") {
		t.Errorf("found %q, %v where the environment names no file", path, err)
	}
}
