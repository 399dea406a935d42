package experiment

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A template is taken as a whole or refused.
func TestReadTemplate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "job.tmpl")
	for size, whole := range map[int]bool{maxTemplate: true, maxTemplate + 1: false} {
		if err := os.WriteFile(path, bytes.Repeat([]byte("#"), size), 0o644); err != nil {
			t.Fatal(err)
		}
		text, err := readTemplate(path)
		if whole && (err != nil || len(text) != size) || !whole && (err == nil || !strings.Contains(err.Error(), path+" has more than")) {
			t.Errorf("of %d bytes %d were read, %v", size, len(text), err)
		}
	}
}
