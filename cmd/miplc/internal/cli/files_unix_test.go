//go:build unix

// Commands write to pipes and devices and never replace them by files.

package cli

import (
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
)

// null returns a null device. For root it is a new one, so that a mistake cannot replace that of
// the system.
func null(t *testing.T) string {
	t.Helper()
	if os.Getuid() != 0 {
		return os.DevNull
	}
	if err := syscall.Mknod("null", syscall.S_IFCHR|0o666, 1<<8|3); err != nil {
		t.Skipf("root cannot make a device here: %v", err)
	}
	return "null"
}

// Pipes and devices are written to and not replaced, with and without --force.
func TestPipesAndDevicesAreWrittenTo(t *testing.T) {
	workshop(t)
	device := null(t)
	for _, w := range fileWriters {
		if strings.Contains(w.args, "sival6") { // its source file is not real
			continue
		}
		do(t, 0, w.to(w.out))
		content := contents(t)[w.out]
		if err := os.Remove(w.out); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mkfifo(w.out, 0o644); err != nil {
			t.Skipf("no named pipe can be made here: %v", err)
		}
		if err := os.Symlink(device, "null-"+w.out); err != nil {
			t.Fatal(err)
		}
		before := contents(t)
		for _, force := range []string{"", " --force"} {
			got := make(chan string)
			go func() {
				f, err := os.Open(w.out)
				if err != nil {
					got <- err.Error()
					return
				}
				defer f.Close()
				text, _ := io.ReadAll(f)
				got <- string(text)
			}()
			do(t, 0, w.to(w.out)+force)
			if t.Failed() { // nobody writes to the pipe
				return
			}
			if text := <-got; text != content {
				t.Errorf("miplc %s: the pipe got %d bytes of %d", w.args, len(text), len(content))
			}
			do(t, 0, w.to("null-"+w.out)+force)
		}
		if info, err := os.Stat("null-" + w.out); err != nil || info.Mode()&os.ModeDevice == 0 {
			t.Fatalf("%s is not a device any more: %v", device, err)
		}
		unchanged(t, w.args, before)
	}
}
