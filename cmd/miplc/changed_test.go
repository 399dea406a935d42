// Files of bags that change or vanish during a training end it with an error that names the file.

package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/miplc/miplc/internal/onnxruntime"
	"github.com/miplc/miplc/internal/testkit/enginetest"
	"github.com/miplc/miplc/runs"
	"github.com/miplc/miplc/train"
)

// A file of a bag that changes, shrinks or vanishes during training is an error with exit code 1 that
// names the file and the bag. The checkpoint is kept: after the file is restored, --resume ends with the
// files of an undisturbed run.
func TestBagFileChangesDuringTraining(t *testing.T) {
	t.Setenv(onnxruntime.EnvLibrary, enginetest.Library(t))
	dir := t.TempDir()
	table := "bag,label,file\n"
	for i := range 12 {
		name := fmt.Sprintf("slide-%d", i)
		table += fmt.Sprintf("%s,c%d,%s.npy\n", name, i%3, name)
		writeFile(t, filepath.Join(dir, name+".npy"), npy(i))
	}
	writeFile(t, filepath.Join(dir, "bags.csv"), []byte(table))
	writeFile(t, filepath.Join(dir, "model.yaml"), []byte("name: disk\nextends: quickstart\ndata: {set: bags.csv, "+
		"labels: known}\ntrain: {epochs: 1500}\n"))
	settings := []string{"train", filepath.Join(dir, "model.yaml"), "--data-dir", dir, "--engine", "native", "--device",
		"cpu"}
	whole := filepath.Join(dir, "whole")
	if out, err := exec.Command("miplc", append(settings, "-o", whole)...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	bag := filepath.Join(dir, "slide-4.npy")
	for name, disturb := range map[string]func() error{
		"vanishes": func() error { return nil },
		"shrinks":  func() error { return os.WriteFile(bag, npy(4)[:200], 0o644) },
		"changes":  func() error { return os.WriteFile(bag, npy(5), 0o644) },
	} {
		t.Run(name, func(t *testing.T) {
			broken := filepath.Join(dir, name)
			says := disturbed(t, append(settings, "-o", broken), broken, bag, disturb)
			if !strings.Contains(says, "slide-4.npy") || !strings.Contains(says, `bag 5 ("slide-4")`) {
				t.Errorf("the error does not name file and bag:\n%s", says)
			}
			if err := os.Rename(bag+".kept", bag); err != nil {
				t.Fatal(err)
			}
			if out, err := exec.Command("miplc", append(settings, "-o", broken, "--resume")...).CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			for _, file := range []string{runs.ModelFile, train.CheckpointFile} {
				if !bytes.Equal(read(t, filepath.Join(whole, file)), read(t, filepath.Join(broken, file))) {
					t.Errorf("%s differs from that of the undisturbed run", file)
				}
			}
		})
	}
}

// disturbed trains, replaces the file of a bag after some epochs, and returns what the command prints
// before it ends with exit code 1. The original becomes bag.kept.
func disturbed(t *testing.T, args []string, run, bag string, disturb func() error) string {
	t.Helper()
	var said bytes.Buffer
	cmd := exec.Command("miplc", args...)
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	over := make(chan error, 1)
	go func() { over <- cmd.Wait() }()
	for len(over) == 0 && epochsKept(run, []string{"."}) == 0 {
		time.Sleep(5 * time.Millisecond)
	}
	err := os.Rename(bag, bag+".kept")
	if err == nil {
		err = disturb()
	}
	if err != nil {
		t.Fatal(err)
	}
	exit := (*exec.ExitError)(nil)
	if err := <-over; !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Fatalf("the command ends with %v:\n%s", err, &said)
	}
	return said.String()
}

// npy returns a file with 20 instances of 4 features.
func npy(seed int) []byte {
	header := "{'descr': '<f4', 'fortran_order': False, 'shape': (20, 4), }"
	header += strings.Repeat(" ", 117-len(header)) + "\n"
	content := append([]byte("\x93NUMPY\x01\x00"), byte(len(header)), 0)
	content = append(content, header...)
	for i := range 80 {
		content = binary.LittleEndian.AppendUint32(content, uint32(0x3f000000+(i*7+seed*13)%97<<12)) // 0.5 and more
	}
	return content
}

func writeFile(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o644); err != nil {
		t.Fatal(err)
	}
}
