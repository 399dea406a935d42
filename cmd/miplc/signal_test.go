// Every command ends soon after a signal and leaves no incomplete file.

package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/miplc/miplc/internal/onnxruntime"
	"github.com/miplc/miplc/internal/testkit/enginetest"
)

// slowInputs writes input files that keep every command busy for seconds.
func slowInputs(t *testing.T, dir string) {
	t.Helper()
	write := func(name string, content []byte) {
		t.Helper()
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	bags, labeled := bytes.NewBufferString("bag,label,candidates"), &bytes.Buffer{}
	packed := gzip.NewWriter(labeled)
	head := "bag,instance_label"
	for f := range 40 {
		fmt.Fprintf(bags, ",f%d", f+1)
		head += fmt.Sprintf(",f%d", f+1)
	}
	fmt.Fprintln(packed, head)
	bags.WriteString("\n")
	row := strings.Repeat(",0.12345678", 40) + "\n"
	for i := range 400_000 {
		if bag := i / 20; i%20 == 0 {
			fmt.Fprintf(bags, "%d,%d,%d %d%s", bag+1, bag%3, bag%3, (bag+1)%3, row)
		} else {
			fmt.Fprintf(bags, "%d,,%s", bag+1, row)
		}
		fmt.Fprintf(packed, "%d,%d%s", i/20+1, i%14, row)
	}
	if err := packed.Close(); err != nil {
		t.Fatal(err)
	}
	write("bags.csv", bags.Bytes())
	write("data/mil/birdsong/instances.csv.gz", labeled.Bytes())
	workers := bytes.NewBufferString("image,DEB,LYM,MUC\n")
	for i := range 1_500_000 {
		fmt.Fprintf(workers, "image-%07d.png,%d,%d,1\n", i, i%2, i%3%2)
	}
	for _, name := range []string{"anna.csv", "ben.csv", "cleo.csv"} {
		write(name, workers.Bytes())
	}
	write("large.yaml", []byte("name: large\nextends: quickstart\ndata: {set: bags.csv, split: {train: 0.5}}\n"))
	write("wide.yaml", []byte("name: wide\nmodel: {blocks: [dense: 1000, dense: 8000, attention, pool: attention, "+
		"classifier]}\n"))
	write("small.yaml", []byte(`name: small
data:
  - {name: P, synth: {set: prototypes, bags: 30, features: 5, min_size: 2, max_size: 4}}
learners:
  - {name: demipl, spec: demipl, set: {train.epochs: 1, train.engine: gorgonia}}
splits: {count: 1}
`))
	write("learner.yaml", []byte("name: learner\nextends: pl-aggd-mean\ndata: {set: generated:prototypes, generated: "+
		"{bags: 6000}}\n"))
}

// Every command ends soon after the first signal and leaves no incomplete file. A training says how to go on.
func TestSignalEndsEveryCommand(t *testing.T) {
	library := enginetest.Library(t)
	t.Setenv(onnxruntime.EnvLibrary, library)
	dir := t.TempDir()
	slowInputs(t, dir)
	for _, line := range []string{"train quickstart -o run --set train.epochs=1", "experiment small.yaml -o small"} {
		cmd := exec.Command("miplc", strings.Fields(line)...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	results, err := filepath.Glob(filepath.Join(dir, "small", "results", "*.jsonl"))
	if err != nil || len(results) != 1 {
		t.Fatalf("%v, %v", results, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "small", "results", "more.jsonl"), bytes.Repeat(read(t, results[0]),
		200_000), 0o644); err != nil {
		t.Fatal(err)
	}
	before := list(t, dir)
	for i, line := range []string{
		"validate large.yaml",
		"data import bags.csv copy.npz",
		"data inspect bags.csv",
		"data synth birdsong-mipl --source data -o birds.npz",
		"data crowd anna.csv ben.csv cleo.csv -o candidates.csv",
		"predict run/model.onnx bags.csv -o predictions.csv",
		"parity run --sizes 400000,300000,350000",
		"parity run/model.onnx --sizes 400000,300000,350000",
		"build wide.yaml -o built",
		"train large.yaml -o never",
		"train learner.yaml -o never",
		"train large.yaml --search --set search.grid.train.lr=[0.1,0.2] -o never",
		"report small",
	} {
		// Alternate between Ctrl-C by a person and SIGTERM by a supervisor.
		stop, flags := os.Signal(os.Interrupt), []string(nil)
		if i%2 == 1 {
			stop, flags = syscall.SIGTERM, []string{"--json"}
		}
		t.Run(line, func(t *testing.T) {
			code, out, errs := signalled(t, dir, stop, append(strings.Fields(line), flags...))
			if code != 1 {
				t.Errorf("exit code %d\n%s%s", code, out, errs)
			}
			if text := out.String() + errs.String(); !strings.Contains(text, "interrupted") {
				t.Errorf("the output is\n%s", text)
			} else if strings.HasPrefix(line, "train") && !strings.Contains(text, "run the command again") {
				t.Errorf("the output does not say how to go on:\n%s", text)
			}
			if flags != nil {
				dec := json.NewDecoder(out)
				if err := dec.Decode(&map[string]any{}); err != nil || dec.More() || errs.Len() > 0 {
					t.Errorf("not one object: %v\n%s%s", err, out, errs)
				}
			}
			if after := list(t, dir); after != before {
				t.Errorf("left behind: %s", after)
			}
		})
	}
}

// signalled starts a command, sends it a signal while it works, and returns its exit code and
// output. If the signal arrived before the command listened for it, signalled starts it again and
// waits longer.
func signalled(t *testing.T, dir string, stop os.Signal, args []string) (code int, out, errs *bytes.Buffer) {
	t.Helper()
	for wait := 200 * time.Millisecond; ; wait *= 2 {
		out, errs = &bytes.Buffer{}, &bytes.Buffer{}
		cmd := exec.Command("miplc", args...)
		cmd.Dir, cmd.Stdout, cmd.Stderr = dir, out, errs
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(wait)
		if err := cmd.Process.Signal(stop); errors.Is(err, os.ErrProcessDone) {
			t.Fatal("it ended before the signal")
		}
		overdue := time.AfterFunc(5*time.Minute, func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait() // the exit code is checked below
		if !overdue.Stop() {
			t.Fatal("it did not end")
		}
		if code = cmd.ProcessState.ExitCode(); code != -1 || wait > 10*time.Second {
			return code, out, errs
		}
	}
}
