package main

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/miplc/miplc/runs"
	"github.com/miplc/miplc/runtime/ortlib"
	"github.com/miplc/miplc/runtime/ortlib/ortest"
	"github.com/miplc/miplc/train"
	"github.com/miplc/miplc/train/xla/pjrt"
	"github.com/miplc/miplc/train/xla/pjrt/pjrttest"
)

// A run that is killed again and again, each time at a random moment and without
// a chance to tidy up, ends with the same files as an unbroken one.
func TestKilledRunResumesToSameBits(t *testing.T) {
	t.Setenv(ortlib.EnvLibrary, ortest.Library(t))
	settings := []string{"train", "quickstart", "--set", "train.epochs=150", "--set", "data.generated.bags=60"}
	whole, killed := filepath.Join(t.TempDir(), "run"), filepath.Join(t.TempDir(), "run")
	if out, err := exec.Command("miplc", append(settings, "-o", whole)...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	const kills = 10
	rng := rand.New(rand.NewPCG(1, 2))
	for range kills {
		cmd := exec.Command("miplc", append(settings, resumeFlags(t, killed)...)...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(1+rng.IntN(150)) * time.Millisecond)
		if err := cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Fatal(err)
		}
		_ = cmd.Wait() // "killed", or nil where it was done sooner
	}
	if _, epoch, err := train.LoadState(killed); err == nil {
		t.Logf("after %d kills %d epochs were done", kills, epoch)
	}
	if out, err := exec.Command("miplc", append(settings, resumeFlags(t, killed)...)...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, name := range []string{runs.ModelFile, runs.SpecFile, train.CheckpointFile, runs.PlotsFolder + "/label-weights.svg"} {
		if !bytes.Equal(read(t, filepath.Join(whole, name)), read(t, filepath.Join(killed, name))) {
			t.Errorf("%s differs from that of the unbroken run", name)
		}
	}
	if a, b := list(t, whole), list(t, killed); a != b {
		t.Errorf("the killed run left %s, the unbroken one %s", b, a)
	}
}

// The same of a group of runs in one program through XLA's plugin: killed at a
// random moment after each time that a checkpoint came, for it compiles longer
// than it trains.
func TestKilledGroupOnPluginResumesToSameBits(t *testing.T) {
	if !pjrttest.OnPlugin() {
		t.Skip("set " + pjrttest.EnvExecutor + "=plugin to run it through XLA")
	}
	t.Setenv(ortlib.EnvLibrary, ortest.Library(t))
	t.Setenv(pjrt.EnvPlugin, pjrttest.Plugin(t))
	settings := []string{"train", "quickstart", "--seeds", "1,2,3", "--engine", "xla", "--device", "cpu",
		"--set", "train.epochs=200", "--set", "data.generated.bags=60"}
	whole, killed := filepath.Join(t.TempDir(), "runs"), filepath.Join(t.TempDir(), "runs")
	if out, err := exec.Command("miplc", append(settings, "-o", whole)...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	const kills = 3
	rng := rand.New(rand.NewPCG(3, 4))
	first := filepath.Join(killed, "seed-1")
	for range kills {
		cmd := exec.Command("miplc", append(settings, resumeGroup(t, first, killed)...)...)
		_, before, _ := train.LoadState(first)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		over := make(chan error, 1)
		go func() { over <- cmd.Wait() }()
		for now := before; now <= before; _, now, _ = train.LoadState(first) {
			select {
			case err := <-over:
				t.Fatalf("it ended before it was killed: %v", err)
			case <-time.After(10 * time.Millisecond):
			}
		}
		time.Sleep(time.Duration(rng.IntN(150)) * time.Millisecond)
		if err := cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Fatal(err)
		}
		<-over // "killed", or nil where it was done sooner
	}
	if _, epoch, err := train.LoadState(first); err == nil {
		t.Logf("after %d kills %d epochs were done", kills, epoch)
	}
	if out, err := exec.Command("miplc", append(settings, resumeGroup(t, first, killed)...)...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, seed := range []string{"seed-1", "seed-2", "seed-3"} {
		for _, name := range []string{runs.ModelFile, runs.SpecFile, train.CheckpointFile, runs.PlotsFolder + "/label-weights.svg"} {
			if !bytes.Equal(read(t, filepath.Join(whole, seed, name)), read(t, filepath.Join(killed, seed, name))) {
				t.Errorf("%s of %s differs from that of the unbroken runs", name, seed)
			}
		}
	}
}

// resumeGroup resumes unless the kill came before anything was written.
func resumeGroup(t *testing.T, first, dir string) []string {
	return append(resumeFlags(t, first)[2:], "-o", dir)
}

// resumeFlags resumes unless the kill came before anything was written.
func resumeFlags(t *testing.T, dir string) []string {
	t.Helper()
	state, err := runs.StateOf(dir)
	if err != nil {
		t.Fatal(err)
	}
	if state == runs.Absent {
		return []string{"-o", dir}
	}
	return []string{"-o", dir, "--resume"}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func list(t *testing.T, dir string) string {
	t.Helper()
	var names []byte
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		rel, _ := filepath.Rel(dir, path)
		names = append(names, rel+" "...)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(names)
}
