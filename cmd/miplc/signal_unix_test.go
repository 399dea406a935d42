//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// A second signal ends a command that waits for a reader of its output, and no temporary file
// remains.
func TestSecondSignalLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe.csv")
	if err := syscall.Mkfifo(pipe, 0o644); err != nil {
		t.Skipf("no named pipe can be made here: %v", err)
	}
	cmd := exec.Command("miplc", "data", "synth", "prototypes", "-o", pipe)
	aside := t.TempDir()
	cmd.Env = append(os.Environ(), "TMPDIR="+aside)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for {
		if files, _ := os.ReadDir(aside); len(files) > 0 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		if err := cmd.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
	}
	if err := cmd.Wait(); err == nil {
		t.Error("the command succeeded")
	}
	if left := list(t, aside); left != ". " {
		t.Errorf("temporary files left: %s", left)
	}
}
