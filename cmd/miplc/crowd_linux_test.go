// Many processes compute one experiment in a shared folder, also without working locks, on a full disk or in a
// read-only folder.

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/miplc/miplc/experiment"
	"github.com/miplc/miplc/internal/fileio"
	"golang.org/x/sys/unix"
)

func init() { programs["unlocked"] = unlocked }

// unlocked runs miplc on a simulated file system whose locks have no effect: flock succeeds without
// locking.
func unlocked() {
	runtime.LockOSThread() // the filter applies to one thread and to the programs it executes
	load := func(offset uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
	}
	program := []unix.SockFilter{
		load(0), // the number of the system call
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_FLOCK, Jt: 0, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO}, // error number 0
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	filter := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
	if err == nil {
		err = unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&filter)), 0, 0)
	}
	var miplc string
	if err == nil {
		miplc, err = exec.LookPath("miplc")
	}
	if err == nil {
		err = syscall.Exec(miplc, append([]string{"miplc"}, os.Args[1:]...), os.Environ())
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(99)
}

// crowded has 32 short cells.
const crowded = `name: crowded
data: [{name: P, synth: {set: prototypes, bags: 20, features: 4, min_size: 2, max_size: 3}}]
learners: [{name: demipl, spec: demipl, set: {train.epochs: 3, train.engine: gorgonia}}]
splits: {count: 32}
`

// dealt is a folder with the shards of the experiment above.
func dealt(t *testing.T, shards int) string {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "crowded.yaml")
	if err := os.WriteFile(file, []byte(crowded), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("miplc", "experiment", "plan", file, "-o", filepath.Join(dir, "out"), "--shards",
		fmt.Sprint(shards)).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return filepath.Join(dir, "out")
}

// Thirty-two processes write to one folder without working locks, two per shard at a time. No line
// is damaged, no result is lost, and results that were computed twice are equal.
func TestCrowdWithoutLocks(t *testing.T) {
	dir := dealt(t, 16)
	held, err := fileio.LockFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	plan := []string{"experiment", "plan", filepath.Join(filepath.Dir(dir), "crowded.yaml"), "-o", dir, "--shards", "16"}
	if out, err := exec.Command("miplc", plan...).CombinedOutput(); err == nil {
		t.Fatalf("the folder is not locked\n%s", out)
	}
	if out, err := exec.Command("unlocked", plan...).CombinedOutput(); err != nil {
		t.Skipf("locks cannot be made ineffective here: %v\n%s", err, out)
	}
	var crowd []*exec.Cmd
	var said []*bytes.Buffer
	for i := range 32 {
		cmd := exec.Command("unlocked", "experiment", "-o", dir, "--jobs", "1", "--shard", fmt.Sprint(i%16+1, "/16"))
		out := &bytes.Buffer{}
		cmd.Stdout, cmd.Stderr = out, out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		crowd, said = append(crowd, cmd), append(said, out)
	}
	for i, cmd := range crowd {
		if err := cmd.Wait(); err != nil {
			t.Errorf("shard %d: %v\n%s", i%16+1, err, said[i])
		}
	}
	have, err := experiment.Read(dir)
	if err != nil || len(have.ByKey) != 32 || len(have.Differ) > 0 {
		t.Fatalf("%d results, %v differ, %v", len(have.ByKey), have.Differ, err)
	}
	for key := range have.ByKey {
		if !have.Done(key) {
			t.Errorf("%+v", have.ByKey[key])
		}
	}
}

// If the disk becomes full in the middle of a line, the process ends with an error. Its earlier
// results remain, and the next process completes the experiment.
func TestFullDisk(t *testing.T) {
	dir := dealt(t, 1)
	shard := []string{"experiment", "-o", dir, "--jobs", "1", "--shard", "1/1"}
	limited := append([]string{"-c", `ulimit -f 4 && exec miplc "$@"`, "miplc"}, shard...) // units of 512 or 1024 bytes
	out, err := exec.Command("sh", limited...).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "the results cannot be kept") {
		t.Fatalf("%v\n%s", err, out)
	}
	kept, err := experiment.Read(dir)
	if err != nil || len(kept.ByKey) == 0 || len(kept.ByKey) == 32 {
		t.Fatalf("%d results, %v", len(kept.ByKey), err)
	}
	if out, err := exec.Command("miplc", shard...).CombinedOutput(); err != nil ||
		!strings.Contains(string(out), fmt.Sprintf("%d of 32 cells were done before", len(kept.ByKey))) {
		t.Errorf("%v\n%s", err, out)
	}
}

// In a read-only folder the process reports an error before it computes anything.
func TestReadOnlyFolder(t *testing.T) {
	dir := dealt(t, 1)
	readOnly := func(args ...string) (string, error) { // also for root
		mount := `mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" || exit 99; exec "$@"`
		cmd := exec.Command("unshare", append([]string{"-rm", "sh", "-c", mount, dir, "miplc"}, args...)...)
		out, err := cmd.CombinedOutput()
		if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() == 99 || strings.Contains(string(out), "unshare:") {
			t.Skipf("no folder can be made read-only here: %v, %s", err, out)
		}
		return string(out), err
	}
	out, err := readOnly("experiment", "-o", dir, "--shard", "1/1")
	if err == nil || !strings.Contains(out, "read-only file system") || strings.Contains(out, "cells to run") {
		t.Errorf("%v\n%s", err, out)
	}
	if out, err := readOnly("experiment", "status", dir); err != nil || !strings.Contains(out, "0 of 32 cells are done") {
		t.Errorf("%v\n%s", err, out)
	}
}

// Results do not depend on the times of files, even if clocks jump.
func TestJumpingClock(t *testing.T) {
	dir := dealt(t, 2)
	for i, years := range []int{+30, -30} {
		if out, err := exec.Command("miplc", "experiment", "-o", dir, "--shard",
			fmt.Sprint(i+1, "/2")).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
			if err != nil {
				return err
			}
			then := time.Now().AddDate(years, 0, 0)
			return os.Chtimes(path, then, then)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	have, err := experiment.Read(dir)
	if err != nil || len(have.ByKey) != 32 {
		t.Fatalf("%d results, %v", len(have.ByKey), err)
	}
	if out, err := exec.Command("miplc", "experiment", "status", dir).CombinedOutput(); err != nil ||
		!strings.Contains(string(out), "32 of 32 cells are done") {
		t.Errorf("%v\n%s", err, out)
	}
}
