// Package kubernetes tests the manifests that miplc writes: here with the types of Kubernetes, in its folders with real
// servers. It is a separate module, so that miplc does not depend on Kubernetes.
package kubernetes

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
)

// Miplc is the path of the command, built from the repository of this module.
type Miplc string

// Build builds the command.
func Build(t *testing.T) Miplc {
	t.Helper()
	_, file, _, _ := runtime.Caller(0)
	path := filepath.Join(t.TempDir(), "miplc")
	cmd := exec.Command("go", "build", "-o", path, "./cmd/miplc")
	cmd.Dir = filepath.Join(filepath.Dir(file), "..", "..")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return Miplc(path)
}

// Run runs the command, which must succeed, and returns its output.
func (m Miplc) Run(t *testing.T, args ...string) []byte {
	t.Helper()
	cmd := exec.Command(string(m), args...)
	var said []byte
	out, err := cmd.Output()
	if exit, ok := err.(*exec.ExitError); ok {
		said = exit.Stderr
	}
	if err != nil {
		t.Fatalf("miplc %q: %v\n%s%s", args, err, out, said)
	}
	return out
}

// Plan plans an experiment in dir and returns the manifest and the number of shards.
func (m Miplc) Plan(t *testing.T, dir, file string, flags ...string) (text []byte, shards int) {
	t.Helper()
	args := append([]string{"experiment", "plan", file, "-o", dir, "--kubernetes", "--image", "miplc:test", "--claim",
		"experiments", "--json"}, flags...)
	var planned struct {
		Job    string
		Shards int
	}
	if err := json.Unmarshal(m.Run(t, args...), &planned); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(planned.Job)
	if err != nil {
		t.Fatal(err)
	}
	return text, planned.Shards
}

// KServe builds a model with the given signature and returns the manifest that serves it.
func (m Miplc) KServe(t *testing.T, signature string) []byte {
	t.Helper()
	dir := t.TempDir()
	model, file := filepath.Join(dir, "model"), filepath.Join(dir, "inferenceservice.yaml")
	m.Run(t, "build", "quickstart", "-o", model, "--set", "export.signature="+signature)
	m.Run(t, "export", model, "--kserve", file, "--name", "quickstart-"+signature)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
