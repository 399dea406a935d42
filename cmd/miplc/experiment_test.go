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

	"github.com/miplc/miplc/experiment"
)

// An experiment that is killed again and again, each time at a random moment and
// without a chance to tidy up, ends with the same report as an unbroken one.
func TestKilledExperimentEndsWithTheSameReport(t *testing.T) {
	file := filepath.Join(t.TempDir(), "killed.yaml")
	if err := os.WriteFile(file, []byte(`name: killed
data:
  - {name: P, synth: {set: prototypes, bags: 30, features: 5, min_size: 2, max_size: 4}, r: [1, 2]}
learners:
  - {name: demipl, spec: demipl, set: {train.epochs: 40, train.engine: gorgonia}}
  - {name: demipl-md, spec: demipl-md, set: {train.epochs: 40, train.engine: gorgonia}, grid: {train.lr: [0.01, 0.1]}}
splits: {count: 5}
attention: {epochs: [1, 40]}
`), 0o644); err != nil {
		t.Fatal(err)
	}
	whole, killed := filepath.Join(t.TempDir(), "whole"), filepath.Join(t.TempDir(), "killed")
	run := func(dir string) *exec.Cmd { return exec.Command("miplc", "experiment", file, "-o", dir, "--jobs", "2") }
	if out, err := run(whole).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	rng := rand.New(rand.NewPCG(3, 4))
	for range 10 {
		cmd := run(killed)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(1+rng.IntN(250)) * time.Millisecond)
		if err := cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Fatal(err)
		}
		_ = cmd.Wait() // "killed", or nil where it was done sooner
	}
	if have, err := experiment.ReadResults(killed); err == nil {
		t.Logf("after 10 kills %d cells were done", len(have.ByKey))
	}
	if out, err := run(killed).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, dir := range []string{whole, killed} {
		if out, err := exec.Command("miplc", "report", dir).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	for _, name := range []string{"report.md", "report.tex", "report.html", "figures/figure-1.svg"} {
		if !bytes.Equal(read(t, filepath.Join(whole, "report", name)), read(t, filepath.Join(killed, "report", name))) {
			t.Errorf("%s differs from that of the unbroken experiment", name)
		}
	}
	for _, dir := range []string{whole, killed} { // has a file for each start
		if err := os.RemoveAll(filepath.Join(dir, experiment.ResultsFolder)); err != nil {
			t.Fatal(err)
		}
	}
	if a, b := list(t, whole), list(t, killed); a != b {
		t.Errorf("the killed experiment left %s, the unbroken one %s", b, a)
	}
}
