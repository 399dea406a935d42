//go:build cgo

// The allocator of large values.

package onnxruntime

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The allocator alone, in a C program.
func TestBlocks(t *testing.T) {
	// so that the cache of test results depends on them
	for _, file := range []string{"blocks_linux.h", "blocks_linux.c", "testdata/blocks.c"} {
		if _, err := os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
	}
	compiler, err := exec.Command("go", "env", "CC").Output()
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "blocks")
	cc := exec.Command(strings.TrimSpace(string(compiler)), "-O1", "-Wall", "-Werror", "-o", program, "testdata/blocks.c",
		"blocks_linux.c", "-lpthread")
	if text, err := cc.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	for _, arguments := range [][]string{nil, {"limited"}} {
		if text, err := exec.Command(program, arguments...).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", arguments, err, text)
		}
	}
}
