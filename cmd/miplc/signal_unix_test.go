//go:build unix

// A second signal ends a blocked command, and a closed terminal does not end one under nohup.

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

// A closed terminal does not end a command that nohup started.
func TestNohup(t *testing.T) {
	pipe, aside := filepath.Join(t.TempDir(), "pipe.csv"), t.TempDir()
	if err := syscall.Mkfifo(pipe, 0o644); err != nil {
		t.Skipf("no named pipe can be made here: %v", err)
	}
	cmd := exec.Command("nohup", "miplc", "data", "synth", "prototypes", "-o", pipe)
	cmd.Env = append(os.Environ(), "TMPDIR="+aside)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for list(t, aside) == ". " {
		time.Sleep(10 * time.Millisecond)
	}
	for range 2 { // a second signal would end it at once
		if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Millisecond)
	}
	select {
	case err := <-ended:
		t.Fatalf("it ended: %v", err)
	default:
	}
	if _, err := os.ReadFile(pipe); err != nil {
		t.Error(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
