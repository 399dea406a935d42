// An experiment that is killed or interrupted at any moment continues to the same results.

package main

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/miplc/miplc/experiment"
)

const killedFile = `name: killed
data:
  - {name: P, synth: {set: prototypes, bags: 30, features: 5, min_size: 2, max_size: 4}, r: [1, 2]}
learners:
  - {name: demipl, spec: demipl, set: {train.epochs: 15, train.engine: gorgonia}}
  - {name: demipl-md, spec: demipl-md, set: {train.epochs: 15, train.engine: gorgonia}, grid: {train.lr: [0.01, 0.1]}}
splits: {count: 5}
attention: {epochs: [1, 15]}
`

// An experiment that is repeatedly killed at random moments, mostly by SIGKILL, ends with the same
// report as an uninterrupted one. So do shards that run in parallel.
func TestKilledExperimentEndsWithTheSameReport(t *testing.T) {
	file := filepath.Join(t.TempDir(), "killed.yaml")
	if err := os.WriteFile(file, []byte(killedFile), 0o644); err != nil {
		t.Fatal(err)
	}
	must := func(args ...string) {
		t.Helper()
		if out, err := exec.Command("miplc", args...).CombinedOutput(); err != nil {
			t.Fatalf("miplc %q: %v\n%s", args, err, out)
		}
	}
	whole, killed, shards := filepath.Join(t.TempDir(), "whole"), filepath.Join(t.TempDir(), "killed"),
		filepath.Join(t.TempDir(), "shards")
	must("experiment", file, "-o", whole, "--jobs", "2")
	must("experiment", "plan", file, "-o", shards, "--shards", "3")
	rng := rand.New(rand.NewPCG(3, 4))
	harm(t, rng, killed, 10, []string{"experiment", file, "-o", killed, "--jobs", "2"})
	var processes [][]string
	for i := range 3 {
		processes = append(processes, []string{"experiment", "-o", shards, "--jobs", "1", "--shard", fmt.Sprint(i+1, "/3")})
	}
	harm(t, rng, shards, 6, processes...)
	for _, dir := range []string{whole, killed, shards} {
		must("report", dir)
		for _, name := range []string{"report.md", "report.tex", "report.html", "figures/figure-1.svg"} {
			if !bytes.Equal(read(t, filepath.Join(whole, "report", name)), read(t, filepath.Join(dir, "report", name))) {
				t.Errorf("%s differs from that of the uninterrupted experiment", filepath.Join(dir, name))
			}
		}
		if err := os.RemoveAll(filepath.Join(dir, experiment.Folder)); err != nil { // every start writes another file
			t.Fatal(err)
		}
	}
	if a, b := list(t, whole), list(t, killed); a != b {
		t.Errorf("the killed experiment left %s, the uninterrupted one %s", b, a)
	}
}

// harm repeatedly starts processes in parallel and kills or interrupts them after a moment, and
// then lets them finish. Interrupted processes must exit with the code for resumable work.
func harm(t *testing.T, rng *rand.Rand, dir string, times int, processes ...[]string) {
	t.Helper()
	for range times {
		var running []*exec.Cmd
		for _, args := range processes {
			cmd := exec.Command("miplc", args...)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			running = append(running, cmd)
		}
		time.Sleep(time.Duration(1+rng.IntN(250)) * time.Millisecond)
		for _, cmd := range running {
			stop := os.Signal(syscall.SIGKILL)
			if rng.IntN(3) == 0 {
				stop = os.Interrupt
			}
			if err := cmd.Process.Signal(stop); err != nil && !errors.Is(err, os.ErrProcessDone) {
				t.Fatal(err)
			}
			_ = cmd.Wait() // the exit code is checked below
			if code := cmd.ProcessState.ExitCode(); stop == os.Interrupt && cmd.ProcessState.Exited() && code != 0 &&
				code != 75 && code != 1 {
				t.Errorf("interrupted with exit code %d", code)
			}
		}
	}
	if have, err := experiment.Read(dir); err == nil {
		t.Logf("%d cells were finished when all processes had been killed", len(have.ByKey))
	}
	for _, args := range processes {
		if out, err := exec.Command("miplc", args...).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
}

// interrupt starts a command on an experiment of two long cells and sends it a signal some time after
// the cells have started.
func interrupt(t *testing.T, dir string, stop os.Signal, wait time.Duration, args []string) {
	t.Helper()
	cmd := exec.Command("miplc", args...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for journals := []string(nil); len(journals) == 0; journals, _ = filepath.Glob(filepath.Join(dir, "results",
		"*.jsonl")) {
		time.Sleep(10 * time.Millisecond)
	}
	time.Sleep(wait)
	if err := cmd.Process.Signal(stop); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // the exit code is checked below
	if code := cmd.ProcessState.ExitCode(); code != 75 ||
		!bytes.Contains(errs.Bytes(), []byte("interrupted; 0 of 2 cells are done and kept")) {
		t.Errorf("exit code %d\n%s", code, &errs)
	}
}

// A signal ends an experiment or a shard with the code for resumable work, and the epochs of
// unfinished cells are saved.
func TestInterruptedExperimentKeepsItsEpochs(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "long.yaml")
	if err := os.WriteFile(file, []byte(`name: long
data: [{name: P, synth: {set: prototypes, bags: 20, features: 4, min_size: 2, max_size: 3}}]
learners: [{name: demipl, spec: demipl, set: {train.epochs: 1000000, train.engine: gorgonia}}]
splits: {count: 2}
`), 0o644); err != nil {
		t.Fatal(err)
	}
	shards := filepath.Join(dir, "shards")
	if out, err := exec.Command("miplc", "experiment", "plan", file, "-o", shards, "--shards",
		"1").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	stops := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // with nohup, this process and its children ignore it
		stops = append(stops, syscall.SIGHUP)
	}
	for name, args := range map[string][]string{
		"whole":  {"experiment", file, "-o", filepath.Join(dir, "whole"), "--jobs", "1"},
		"shards": {"experiment", "-o", shards, "--shard", "1/1", "--jobs", "1"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, stop := range stops {
				for wait := 300 * time.Millisecond; ; wait *= 2 { // into the training
					interrupt(t, filepath.Join(dir, name), stop, wait, args)
					kept, err := filepath.Glob(filepath.Join(dir, name, "trials", "*", "*", "*", "checkpoint.miplc"))
					if err != nil || len(kept) > 1 || len(kept) == 0 && wait > 10*time.Second {
						t.Fatalf("checkpoints %q, %v", kept, err)
					}
					if len(kept) == 1 {
						break
					}
				}
			}
		})
	}
}
