//go:build unix

// A named pipe in place of an input file is rejected at once.

package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/miplc/miplc/internal/libraries"
	"github.com/miplc/miplc/internal/onnxruntime"
	"github.com/miplc/miplc/internal/testkit/enginetest"
)

// A named pipe in place of an input file is rejected without waiting for a writer.
func TestPipesAreRefused(t *testing.T) {
	t.Setenv(onnxruntime.EnvLibrary, enginetest.Library(t))
	t.Setenv(libraries.EnvCache, t.TempDir()) // else doctor trains with an installed plugin
	dir := t.TempDir()
	miplc := func(args ...string) (string, error) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, "miplc", args...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	for _, line := range []string{"train quickstart -o run --set train.epochs=1",
		"data synth prototypes -o bags.csv --bags 20", "experiment plan smoke -o planned"} {
		if out, err := miplc(strings.Fields(line)...); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	for _, name := range []string{"marked/.miplc.json", "exp/experiment.yaml", "planned/results/one.jsonl", "p.csv",
		"p.csv.gz", "p.npz", "p.mat", "p.onnx", "p.so", "p.zip", "p.yaml", "images/A/p.png", "images/B/p.png", "split.csv",
		"mil/birdsong/instances.csv.gz"} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mkfifo(file, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, line := range []string{
		"validate p.yaml",
		"validate quickstart --set data.set=p.csv",
		"train quickstart -o never --set data.set=p.csv.gz",
		"train quickstart -o never --set data.set=bags.csv --set data.split.index=split.csv --set data.split.number=1",
		"train quickstart -o never --library p.so",
		"build quickstart -o never --library p.so",
		"predict p.onnx bags.csv",
		"predict run/model.onnx p.npz",
		"predict run/model.onnx p.mat",
		"predict run/model.onnx bags.csv --library p.so",
		"parity p.onnx",
		"data import p.csv never.npz",
		"data inspect p.csv.gz",
		"data crowd p.csv p.csv p.csv -o never.csv",
		"data bags images --generator row -o never.npz",
		"data bags p.zip --generator row -o never.npz",
		"data synth birdsong-mipl --source . -o never.npz",
		"experiment p.yaml -o never",
		"doctor --library p.so",
		"train quickstart -o marked --set train.epochs=1",
		"report exp",
		"experiment status planned",
	} {
		out, err := miplc(strings.Fields(line)...)
		if err == nil && !strings.HasPrefix(line, "doctor") {
			t.Errorf("%s: the command succeeded\n%s", line, out)
		}
		if !strings.Contains(out, "is a pipe, not a file") && !strings.Contains(out, "is not a file") {
			t.Errorf("%s: unexpected message\n%s", line, out)
		}
	}
	if found, _ := filepath.Glob(filepath.Join(dir, "never*")); found != nil {
		t.Errorf("left behind: %v", found)
	}
}
