package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// TestFiles compares the files in the folder of the package with what the generator writes.
func TestFiles(t *testing.T) {
	files, err := generate()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Error(err)
		} else if !bytes.Equal(got, want) {
			t.Errorf("%s differs from the output of the generator: run `go run .` in this folder, and read the diff", name)
		}
	}
}
