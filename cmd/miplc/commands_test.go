// Commands keep their promises for any input: bounded time and memory, no panic, clear errors and no leftover files.

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/miplc/miplc/internal/onnxruntime"
	"github.com/miplc/miplc/internal/testkit/enginetest"
)

var (
	commandsFor  = flag.Duration("commands.for", 0, "how long TestCommands draws cases; 0: a few")
	commandsSeed = flag.Uint64("commands.seed", 1, "seed of the cases of TestCommands")
	commandsCase = flag.Uint64("commands.case", 0, "the first case of TestCommands")
)

// Limits of a command. miplc may use half of the memory limit of the process, because its estimates
// are lower bounds.
const (
	commandSeconds = 10 // of processor time
	commandMemory  = 1 << 30
	toldMemory     = "GOMEMLIMIT=512MiB"
)

// TestCommands generates specs, data and flags from a grammar and checks what all commands promise:
// exit codes 0, 1 and 2, bounded time and memory, no crash, one JSON object and no incomplete file. To run it for
// longer:
//
//	go test ./cmd/miplc -run 'TestCommands$' -timeout 0 -commands.for 30m -commands.seed 7
func TestCommands(t *testing.T) {
	t.Setenv(onnxruntime.EnvLibrary, enginetest.Library(t))
	t.Setenv("MIPLC_DATA", "")
	few := uint64(25)
	if *commandsFor > 0 {
		few = math.MaxUint64
	}
	end := time.Now().Add(*commandsFor)
	ran := map[string]int{}
	for i := *commandsCase; i < *commandsCase+few && (*commandsFor == 0 || time.Now().Before(end)); i++ {
		g := grammar{rand.New(rand.NewPCG(*commandsSeed, i))}
		c := commandCase{T: t, dir: filepath.Join(t.TempDir(), fmt.Sprint(i)), number: i, ran: ran}
		if err := g.files(c.dir); err != nil {
			t.Fatal(err)
		}
		for range 2 + g.IntN(4) {
			args := g.command()
			if g.chance(0.5) {
				args = append(args, "--json")
			}
			c.run(args)
		}
		os.RemoveAll(c.dir)
	}
	t.Logf("commands by exit code: %v", ran)
}

// commandCase is a folder in which several commands run in sequence.
type commandCase struct {
	*testing.T
	dir    string
	number uint64
	ran    map[string]int
}

func (c *commandCase) fail(args []string, out []byte, format string, values ...any) {
	spec, _ := os.ReadFile(filepath.Join(c.dir, "spec.yaml"))
	c.Errorf("-commands.seed %d -commands.case %d: miplc %q: %s\n%.1500s\nspec.yaml:\n%.1500s", *commandsSeed, c.number,
		args, fmt.Sprintf(format, values...), out, spec)
}

var crash = regexp.MustCompile(`(?m)goroutine \d|panic|^fatal error|bug in miplc|\bbug:|runtime error|SIGSEGV`)

func (c *commandCase) run(args []string) {
	before := c.tree()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, "miplc", args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = c.dir, &stdout, &stderr
	cmd.Env = append(os.Environ(), toldMemory)
	_ = cmd.Run() // its state is checked below
	state := cmd.ProcessState
	if state == nil {
		c.Fatalf("miplc %q does not start", args)
	}
	out := append(slices.Clone(stdout.Bytes()), stderr.Bytes()...)
	code := state.ExitCode()
	c.ran[fmt.Sprint(code)]++
	if code < 0 || code > 2 {
		c.fail(args, out, "exit code %d", code) // negative: it did not end in time
	}
	if took := state.UserTime() + state.SystemTime(); took > commandSeconds*time.Second {
		c.fail(args, out, "took %v of processor time", took)
	}
	if memory := memoryUsed(state); memory > commandMemory {
		c.fail(args, out, "took %d MiB", memory>>20)
	}
	if found := crash.Find(out); found != nil {
		c.fail(args, out, "it says %q", found)
	}
	if slices.Contains(args, "--json") && code >= 0 {
		c.oneObject(args, out, stdout.Bytes(), stderr.Bytes(), code)
	}
	c.leftovers(args, out, code, before)
}

func (c *commandCase) oneObject(args []string, out, stdout, stderr []byte, code int) {
	dec := json.NewDecoder(bytes.NewReader(stdout))
	object := map[string]any{}
	if err := dec.Decode(&object); err != nil || dec.More() {
		if code == 0 && slices.ContainsFunc(args, func(a string) bool { return a == "help" || a == "--help" || a == "--" }) {
			return // help is not JSON
		}
		c.fail(args, out, "not one JSON object: %v", err)
	}
	if code != 0 && len(stderr) > 0 {
		c.fail(args, out, "text on standard error beside JSON")
	}
}

// tree lists the files of the case.
func (c *commandCase) tree() map[string]bool {
	found := map[string]bool{}
	err := filepath.WalkDir(c.dir, func(path string, d fs.DirEntry, err error) error {
		if rel, _ := filepath.Rel(c.dir, path); err == nil && rel != "." {
			found[rel] = true
		}
		return err
	})
	if err != nil {
		c.Fatal(err)
	}
	return found
}

// kept reports whether a command with this exit code may leave a file: a failed training its
// checkpoints or the model that failed its check, an experiment its generated datasets.
func kept(command, name string, code int) bool {
	switch command {
	case "train", "build":
		return code == 1
	case "experiment":
		return code == 1 || name == "cells" || strings.HasPrefix(name, filepath.Join("cells", "data"))
	}
	return false
}

func (c *commandCase) leftovers(args []string, out []byte, code int, before map[string]bool) {
	for name := range c.tree() {
		base := filepath.Base(name)
		aside := strings.HasPrefix(base, ".") && base != ".miplc.json" && base != ".miplc.runs.json"
		for _, end := range []string{".new", ".tmp", ".lock"} {
			aside = aside || strings.HasSuffix(base, end)
		}
		if aside {
			c.fail(args, out, "leaves %s", name)
		} else if !before[name] && code != 0 && !kept(args[0], name, code) {
			c.fail(args, out, "fails and leaves %s", name)
		}
	}
}
