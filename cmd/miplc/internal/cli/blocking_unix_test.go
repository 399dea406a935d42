//go:build unix

// Named pipes in folders are reported as errors, and no command waits for them.

package cli

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// ends runs a command that must not block on a pipe, and returns its exit code and standard error.
func ends(t *testing.T, args string) (code int, errs string) {
	t.Helper()
	con, _, text := newConsole(nil)
	done := make(chan int, 1)
	go func() { done <- Main(strings.Fields(args), con) }()
	select {
	case code := <-done:
		return code, text.String()
	case <-time.After(2 * time.Minute):
		t.Fatalf("miplc %s blocks on a pipe", args)
		return 0, ""
	}
}

func pipe(t *testing.T, path string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(path, 0o644); err != nil {
		t.Skipf("no named pipe can be made here: %v", err)
	}
}

// A named pipe with the name of a file that a command writes to a folder is an error, and no command
// blocks on it. The test covers output files, the lock, the mark and temporary files.
func TestPipesInFoldersDoNotBlock(t *testing.T) {
	workshop(t)
	for _, w := range folderWriters {
		for _, name := range []string{w.out, ".miplc.lock", ".miplc.json"} {
			if name != w.out && w.by == "" {
				continue
			}
			pipe(t, "pipes/"+name)
			code, errs := ends(t, w.to("pipes"))
			if code != 1 || !strings.Contains(errs, filepath.Base(name)) {
				t.Errorf("miplc %s with a pipe %s: exit code %d\n%s", w.args, name, code, errs)
			}
			if err := os.RemoveAll("pipes"); err != nil {
				t.Fatal(err)
			}
		}
	}
	pipe(t, "aside/.model.miplc-00000000.onnx")
	if code, errs := ends(t, "build quickstart -o aside"); code != 0 {
		t.Errorf("a pipe named like a temporary file: exit code %d\n%s", code, errs)
	}
}

// A command that reads a result folder fails if a file in it is a pipe.
func TestPipesInResultsDoNotBlock(t *testing.T) {
	workshop(t)
	do(t, 0, "train quickstart -o run --set train.epochs=1")
	for _, c := range []struct{ dir, args string }{
		{"run", "train --resume -o run"}, {"run", "parity run"}, {"run", "export run --docker docker"},
		{"run", "gen go run -o gen"},
		{"build", "predict build bags.csv"}, {"done", "experiment e.yaml -o done"}, {"done", "experiment status done"},
		{"done", "report done -o report"},
	} {
		var names []string
		for name := range contents(t) {
			if rest, below := strings.CutPrefix(name, c.dir+"/"); below && !strings.HasPrefix(rest, "plots/") {
				names = append(names, name)
			}
		}
		for _, name := range names {
			if err := os.Rename(name, "kept"); err != nil {
				t.Fatal(err)
			}
			pipe(t, name)
			ends(t, c.args)
			if err := os.RemoveAll(name); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename("kept", name); err != nil {
				t.Fatal(err)
			}
			for _, dir := range []string{"docker", "gen", "report"} {
				if err := os.RemoveAll(dir); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}
