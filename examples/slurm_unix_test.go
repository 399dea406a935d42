//go:build unix

// The job of examples/slurm runs as Slurm runs it, and requeues itself.

package examples_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/miplc/miplc/internal/diag"
)

// slurm returns the environment of a task, with the program of miplc and commands of Slurm in bin.
func slurm(bin, program string, shards, tasks, task int) []string {
	return []string{"PATH=" + bin + string(filepath.ListSeparator) + os.Getenv("PATH"), "MIPLC=" + program,
		"MIPLC_PLAN=0123456789ab", fmt.Sprint("MIPLC_SHARDS=", shards), "SLURM_ARRAY_JOB_ID=7",
		fmt.Sprint("SLURM_ARRAY_TASK_COUNT=", tasks), fmt.Sprint("SLURM_ARRAY_TASK_ID=", task)}
}

// A task that is signalled before its time limit requeues itself if the shard can be resumed, up to a
// limit. A task that is finished, failed, wrong or cancelled does not.
func TestSlurmJobRequeues(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("bash is not installed")
	}
	dir := t.TempDir()
	put := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	put("scontrol", "#!/bin/sh\necho \"$@\" >>"+diag.ShellWord(filepath.Join(dir, "queue"))+"\n")
	for name, c := range map[string]struct {
		shard, restarts string
		signal          syscall.Signal
		code            int
		requeued        bool
	}{
		"told": {"trap 'exit 75' TERM; touch ready; for i in {1..6000}; do sleep 0.01; done", "3",
			syscall.SIGUSR1, 75, true},
		"told, done": {"trap 'exit 0' TERM; touch ready; for i in {1..6000}; do sleep 0.01; done", "3", syscall.SIGUSR1,
			0, false},
		"told too often": {"trap 'exit 75' TERM; touch ready; for i in {1..6000}; do sleep 0.01; done", "20",
			syscall.SIGUSR1, 75, false},
		"cancelled": {"trap 'exit 75' TERM; touch ready; for i in {1..6000}; do sleep 0.01; done", "3",
			syscall.SIGTERM, 75, false},
		"told by another": {"exit 75", "", 0, 75, true},
		"cells failed":    {"exit 1", "", 0, 1, false},
		"another plan":    {"exit 2", "", 0, 2, false},
		"out of memory":   {"kill -KILL $$", "", 0, 137, false},
		"told at once":    {"trap 'exit 75' TERM; touch early; for i in {1..6000}; do sleep 0.01; done", "3", 0, 75, true},
		"what it is given": {`[ "$*" = "experiment -o ` + dir +
			` --shard auto" ] && [ "$MIPLC_SHARDS $MIPLC_PLAN $SLURM_ARRAY_TASK_ID" = "24 0123456789ab 3" ]`, "", 0, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			for _, left := range []string{"queue", "ready"} {
				_ = os.Remove(filepath.Join(dir, left))
			}
			program := put("miplc", "#!/bin/bash\ncd "+diag.ShellWord(dir)+"\n"+c.shard+"\n")
			cmd := exec.Command(bash, "slurm/experiment.sbatch", dir)
			// Bash sources this file first: the signal of "told at once" arrives when the shard runs, but
			// before the job has read the number of its process.
			early := put("early.sh", `trap '[ "$BASH_COMMAND" != "shard=\$!" ] || { while [ ! -e `+
				diag.ShellWord(filepath.Join(dir, "early"))+` ]; do sleep 0.01; done; kill -USR1 $$; }' DEBUG`+"\n")
			if name == "told at once" {
				cmd.Env = append(cmd.Environ(), "BASH_ENV="+early)
			}
			cmd.Env = append(cmd.Environ(), slurm(dir, program, 24, 24, 3)...)
			cmd.Env = append(cmd.Env, "SLURM_RESTART_COUNT="+c.restarts)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			for c.signal != 0 {
				if _, err := os.Stat(filepath.Join(dir, "ready")); err == nil {
					if err := cmd.Process.Signal(c.signal); err != nil {
						t.Fatal(err)
					}
					break
				}
				time.Sleep(10 * time.Millisecond)
			}
			_ = cmd.Wait() // the exit code is checked below
			queue, err := os.ReadFile(filepath.Join(dir, "queue"))
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Fatal(err)
			}
			if code := cmd.ProcessState.ExitCode(); code != c.code || (string(queue) == "requeue 7_3\n") != c.requeued {
				t.Errorf("exit code %d, queue %q", code, queue)
			}
		})
	}
}

// With more shards than an array may have tasks, every shard is computed by one task, also after a failed one. A task
// that is stopped between its shards requeues itself.
func TestSlurmJobWithFewTasks(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("bash is not installed")
	}
	const shards, tasks = 2500, 1000
	for _, c := range []struct {
		name, shard string
		task        int
		ran         string
		code        int
		requeued    bool
	}{
		{"three shards", "", 499, "499 1499 2499", 0, false},
		{"two shards", "", 500, "500 1500", 0, false},
		{"cells failed", "[ $SLURM_ARRAY_TASK_ID -ne 1499 ] || exit 1", 499, "499 1499 2499", 1, false},
		{"out of memory", "[ $SLURM_ARRAY_TASK_ID -ne 1499 ] || kill -KILL $$", 499, "499 1499 2499", 137, false},
		{"another plan", "exit 2", 499, "499", 2, false},
		{"interrupted", "[ $SLURM_ARRAY_TASK_ID -ne 1499 ] || exit 75", 499, "499 1499", 75, true},
		{"told, done", "trap 'exit 0' TERM; kill -USR1 $PPID; for i in {1..6000}; do sleep 0.01; done", 499, "499", 75, true},
	} {
		dir := t.TempDir()
		put := func(name, text string) string {
			path := filepath.Join(dir, name)
			if err := os.WriteFile(path, []byte("#!/bin/bash\ncd "+diag.ShellWord(dir)+"\n"+text+"\n"), 0o755); err != nil {
				t.Fatal(err)
			}
			return path
		}
		put("scontrol", `echo "$@" >>queue`)
		program := put("miplc", "echo -n \"$SLURM_ARRAY_TASK_ID \" >>ran\n"+c.shard)
		cmd := exec.Command(bash, "slurm/experiment.sbatch", dir)
		cmd.Env = append(cmd.Environ(), slurm(dir, program, shards, tasks, c.task)...)
		_ = cmd.Run() // the exit code is checked below
		ran, _ := os.ReadFile(filepath.Join(dir, "ran"))
		queue, _ := os.ReadFile(filepath.Join(dir, "queue"))
		if code := cmd.ProcessState.ExitCode(); code != c.code || strings.TrimSpace(string(ran)) != c.ran ||
			(string(queue) == fmt.Sprintf("requeue 7_%d\n", c.task)) != c.requeued {
			t.Errorf("%s: exit code %d, shards %s, queue %q", c.name, code, ran, queue)
		}
	}
}
