// A model file that changes while it is read is rejected.

package onnxpb

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// written is a file that changes after a part of it was read.
type written struct {
	fs.File
	change func()
	parts  int
}

func (w *written) Read(p []byte) (int, error) {
	if w.parts++; w.parts == 2 {
		w.change()
	}
	return w.File.Read(p[:min(len(p), 100)])
}

// A model that is written to while it is read is rejected. A file that is replaced by a rename
// meanwhile is read to its end.
func TestReadWhileWritten(t *testing.T) {
	old, err := os.ReadFile("../../runtime/testdata/demipl-3x4.onnx")
	if err != nil {
		t.Fatal(err)
	}
	other, err := os.ReadFile("../../runtime/testdata/saturated-3x4.onnx")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "model.onnx")
	for _, c := range []struct {
		name    string
		change  func() error
		refused bool
	}{
		{"left alone", func() error { return nil }, false},
		{"overwritten", func() error { return os.WriteFile(path, other, 0o644) }, true},
		{"cut", func() error { return os.Truncate(path, 500) }, true},
		{"renamed over", func() error {
			return errors.Join(os.WriteFile(path+".new", other, 0o644), os.Rename(path+".new", path))
		}, false},
		{"removed", func() error { return os.Remove(path) }, false},
	} {
		past := time.Now().Add(-time.Hour) // the timestamps of a file system are coarse
		if err := errors.Join(os.WriteFile(path, old, 0o644), os.Chtimes(path, past, past)); err != nil {
			t.Fatal(err)
		}
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		data, err := readStill(&written{File: f, change: func() {
			if err := c.change(); err != nil {
				t.Fatal(err)
			}
		}})
		f.Close()
		switch {
		case c.refused && err == nil:
			t.Errorf("%s: %v", c.name, err)
		case !c.refused && (err != nil || string(data) != string(old)):
			t.Errorf("%s: %d bytes, %v", c.name, len(data), err)
		}
	}
}
