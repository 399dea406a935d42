//go:build linux && cgo && (amd64 || arm64)

package pjrt

import (
	"os"
	"testing"
)

// A plugin that is named in MIPLC_PJRT_PLUGIN loads and tells a version that is
// let through, and without a GPU opening it is an error, not a crash.
func TestPlugin(t *testing.T) {
	path := os.Getenv(EnvPlugin)
	if path == "" {
		t.Skip("set " + EnvPlugin + " to the xla_cuda_plugin.so of the Python package jax-cuda13-pjrt to load it")
	}
	maj, min, err := Version(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s speaks PJRT %d.%d", path, maj, min)
	if err := checkVersion(path, maj, min); err != nil {
		t.Error(err)
	}
	if _, _, err := Device(); err == nil {
		t.Log("a GPU is here: the tests of train/xla run on it")
		return
	}
	if _, err := client(path, Options{}); err == nil {
		t.Error("a client opened without a GPU")
	} else {
		t.Logf("without a GPU the plugin says: %v", err)
	}
}
