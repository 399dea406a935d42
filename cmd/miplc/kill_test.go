// Runs that are killed at any moment and resumed end with the files of uninterrupted ones.

package main

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/miplc/miplc/internal/onnxruntime"
	"github.com/miplc/miplc/internal/testkit/enginetest"
	"github.com/miplc/miplc/runs"
	"github.com/miplc/miplc/train"
	"github.com/miplc/miplc/train/engines"
	"github.com/miplc/miplc/train/xla/pjrt"
)

// A run that is killed many times at random moments ends with the files of an uninterrupted run. It
// uses train.best and train.refit.
func TestKilledRunResumesToSameBits(t *testing.T) {
	killed(t, 6, []string{"."}, "--set", "train.epochs=120", "--set", "data.split.validation=0.2", "--set",
		"train.best=loss", "--set", "train.refit=true")
}

// Several runs of one command end with the files of an uninterrupted command on every engine, if
// some were finished, some running and some not started when the process was killed.
func TestKilledGroupsResumeToSameBits(t *testing.T) {
	t.Setenv(pjrt.EnvPlugin, "")
	for _, on := range [][]string{{"--engine", "native"}, {"--engine", "xla", "--device", engines.Go}} {
		t.Run(on[1], func(t *testing.T) {
			epochs := map[string]string{"native": "600", "xla": "60"}[on[1]] // so that most kills are during the training
			killed(t, 4, seeds, append(on, "--seeds", "1,2,3", "--set", "train.epochs="+epochs)...)
		})
	}
}

// The same is true for a group of runs in one program of the XLA plugin.
func TestKilledGroupOnPluginResumesToSameBits(t *testing.T) {
	enginetest.OnlyOnPlugin(t)
	t.Setenv(pjrt.EnvPlugin, enginetest.Plugin(t))
	killed(t, 3, seeds, "--seeds", "1,2,3", "--engine", "xla", "--device", engines.Go, "--set", "train.epochs=200")
}

var seeds = []string{"seed-1", "seed-2", "seed-3"}

// killed trains quickstart without interruption, and with some kills at random moments, and
// compares the folders of the runs. Most processes live until they have saved a further checkpoint,
// because compiling may take longer than training.
func killed(t *testing.T, kills int, folders []string, flags ...string) {
	t.Helper()
	t.Setenv(onnxruntime.EnvLibrary, enginetest.Library(t))
	settings := append([]string{"train", "quickstart", "--set", "data.generated.bags=60"}, flags...)
	whole, broken := filepath.Join(t.TempDir(), "run"), filepath.Join(t.TempDir(), "run")
	if out, err := exec.Command("miplc", append(settings, "-o", whole)...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	rng := rand.New(rand.NewPCG(1, uint64(kills)))
	for range kills {
		cmd := exec.Command("miplc", append(settings, resumeFlags(t, broken, folders)...)...)
		before := epochsKept(broken, folders)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		over := make(chan error, 1)
		go func() { over <- cmd.Wait() }()
		for wait := rng.IntN(4) > 0; wait && len(over) == 0 && epochsKept(broken, folders) <= before; {
			time.Sleep(5 * time.Millisecond)
		}
		time.Sleep(time.Duration(1+rng.IntN(150)) * time.Millisecond)
		if err := cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Fatal(err)
		}
		<-over // "killed", or nil if the process ended earlier
	}
	t.Logf("after %d kills %d epochs were finished", kills, epochsKept(broken, folders))
	if out, err := exec.Command("miplc", append(settings, resumeFlags(t, broken,
		folders)...)...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, folder := range folders {
		for _, name := range []string{runs.ModelFile, runs.SpecFile, train.CheckpointFile, runs.PlotsFolder +
			"/label-weights.svg"} {
			if !bytes.Equal(read(t, filepath.Join(whole, folder, name)), read(t, filepath.Join(broken, folder, name))) {
				t.Errorf("%s of %s differs from that of the uninterrupted run", name, folder)
			}
		}
	}
	if a, b := withoutLocks(list(t, whole)), withoutLocks(list(t, broken)); a != b {
		t.Errorf("the killed process left %s, the uninterrupted one %s", b, a)
	}
}

// A search that is killed many times at random moments ends with the choice, the trials and the model of an
// uninterrupted one.
func TestKilledSearchResumesToSameChoice(t *testing.T) {
	t.Setenv(onnxruntime.EnvLibrary, enginetest.Library(t))
	settings := []string{"train", "quickstart", "--search", "--trials", "12", "--set", "train.epochs=150", "--set",
		"data.generated.bags=60"}
	whole, broken := filepath.Join(t.TempDir(), "run"), filepath.Join(t.TempDir(), "run")
	if out, err := exec.Command("miplc", append(settings, "-o", whole)...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	rng, ended := rand.New(rand.NewPCG(1, 2)), false
	for kills := 0; !ended; kills++ {
		flags := append(settings, "-o", broken)
		if found, err := runs.FindResumable(broken); err == nil && found.Search != nil {
			flags = []string{"train", "--resume", "-o", broken}
		}
		cmd := exec.Command("miplc", flags...)
		var out bytes.Buffer
		cmd.Stderr = &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if kills < 12 {
			time.Sleep(time.Duration(20+rng.IntN(250)) * time.Millisecond)
			_ = cmd.Process.Kill() // it may have ended
		}
		if err := cmd.Wait(); err == nil {
			ended = true
			t.Logf("ended after %d kills", kills)
		} else if kills >= 12 {
			t.Fatalf("%v\n%s", err, out.String())
		}
	}
	for _, name := range []string{runs.ModelFile, runs.SpecFile, train.CheckpointFile, "search/curves.svg",
		"search/settings.svg", "search/plan.json"} {
		if !bytes.Equal(read(t, filepath.Join(whole, name)), read(t, filepath.Join(broken, name))) {
			t.Errorf("%s differs from that of the uninterrupted search", name)
		}
	}
	if a, b := withoutLocks(list(t, whole)), withoutLocks(list(t, broken)); a != b {
		t.Errorf("the killed process left %s, the uninterrupted one %s", b, a)
	}
}

// withoutLocks removes lock files from a list. A process that is killed between the last file of a run and the removal
// of its lock leaves the file, which locks nothing.
func withoutLocks(list string) string {
	return regexp.MustCompile(`\S*\.miplc\.lock `).ReplaceAllString(list, "")
}

// epochsKept returns the number of epochs in the checkpoints of runs.
func epochsKept(dir string, folders []string) (epochs int) {
	for _, folder := range folders {
		c, _, _ := train.LoadCheckpoint(filepath.Join(dir, folder)) // epoch 0 without a checkpoint
		epochs += c.Epoch
	}
	return epochs
}

// resumeFlags returns the flags that resume, or none if nothing was written before the kill.
func resumeFlags(t *testing.T, dir string, folders []string) []string {
	t.Helper()
	for _, folder := range folders {
		state, err := runs.StateOf(filepath.Join(dir, folder))
		if err != nil {
			t.Fatal(err)
		}
		if state != runs.Absent {
			return []string{"-o", dir, "--resume"}
		}
	}
	return []string{"-o", dir}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func list(t *testing.T, dir string) string {
	t.Helper()
	var names []byte
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		rel, _ := filepath.Rel(dir, path)
		names = append(names, rel+" "...)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(names)
}
