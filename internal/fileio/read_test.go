//go:build unix

// What is not a regular file is refused.

package fileio

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	file, pipe, link := filepath.Join(dir, "file"), filepath.Join(dir, "pipe"), filepath.Join(dir, "link")
	if err := os.WriteFile(file, []byte("text"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(pipe, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(pipe, link); err != nil {
		t.Fatal(err)
	}
	f, info, err := Open(file)
	if err != nil || info.Size() != 4 {
		t.Fatal(err)
	}
	f.Close()
	for path, want := range map[string]string{
		pipe: "is a pipe, not a file", link: "is a pipe, not a file", dir: "is a directory, not a file",
		os.DevNull: "is a device, not a file", filepath.Join(dir, "none"): "open " + filepath.Join(dir, "none") +
			": no such file",
	} {
		if _, _, err := Open(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
}

// ReadAtMost reads a whole file or returns an error.
func TestReadAtMost(t *testing.T) {
	const most = 1000
	path := filepath.Join(t.TempDir(), "file")
	for size, whole := range map[int]bool{most: true, most + 1: false} {
		if err := os.WriteFile(path, bytes.Repeat([]byte("#"), size), 0o644); err != nil {
			t.Fatal(err)
		}
		content, err := ReadAtMost(path, most, "a token")
		if whole && (err != nil || len(content) != size) || !whole &&
			(err == nil || !strings.Contains(err.Error(), path+" has more than 1000 bytes")) {
			t.Errorf("of %d bytes %d were read, %v", size, len(content), err)
		}
	}
}

// Special characters of patterns in the name of a folder are plain characters.
func TestGlob(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out[1]")
	for _, name := range []string{"a/x.onnx", "b/x.onnx", "b/y.txt"} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, filepath.FromSlash(name)), nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{filepath.Join(dir, "a", "x.onnx"), filepath.Join(dir, "b", "x.onnx")}
	if got := Glob(dir, "*/*.onnx"); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := Glob(filepath.Join(dir, "none"), "*"); got != nil {
		t.Errorf("in a folder that does not exist: %q", got)
	}
}
