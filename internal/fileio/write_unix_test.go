//go:build unix

// Permissions, pipes, devices and full disks.

package fileio

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// New files get the permissions that the umask allows. Replaced files keep theirs.
func TestPermissions(t *testing.T) {
	for _, mask := range []int{0o022, 0o077, 0o002} {
		dir := t.TempDir()
		before := syscall.Umask(mask)
		err := errors.Join(
			Replace(filepath.Join(dir, "new"), nil),
			os.WriteFile(filepath.Join(dir, "old"), nil, 0o600),
			os.Chmod(filepath.Join(dir, "old"), 0o640),
			Replace(filepath.Join(dir, "old"), nil))
		syscall.Umask(before)
		if err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]os.FileMode{"new": 0o666 &^ os.FileMode(mask), "old": 0o640} {
			if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode().Perm() != want {
				t.Errorf("mask %o: %s has %o, want %o, %v", mask, name, info.Mode().Perm(), want, err)
			}
		}
	}
}

// With WriteOptions.AllowStream a file that is not regular is written to, by its name and through a
// link, and not replaced.
func TestAllowStream(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o644); err != nil {
		t.Skipf("no named pipe can be made here: %v", err)
	}
	link(t, "pipe", filepath.Join(dir, "link"))
	for _, name := range []string{"pipe", "link"} {
		got := make(chan string)
		go func() {
			f, err := os.Open(pipe)
			if err != nil {
				got <- err.Error()
				return
			}
			defer f.Close()
			content, _ := io.ReadAll(f)
			got <- string(content)
		}()
		if err := Write(filepath.Join(dir, name), []byte("new"), WriteOptions{AllowStream: true}); err != nil {
			t.Fatal(err)
		}
		if content := <-got; content != "new" {
			t.Errorf("%s got %q", name, content)
		}
	}
	holds(t, dir, map[string]string{"pipe": "p---------", "link": "L---------"})
}

// Without WriteOptions.AllowStream no write blocks on a named pipe: a pipe with the name of a file or a
// lock of miplc is an error.
func TestPipesInTheWay(t *testing.T) {
	path := filepath.Join(t.TempDir(), "model.onnx")
	if err := syscall.Mkfifo(path, 0o644); err != nil {
		t.Skipf("no named pipe can be made here: %v", err)
	}
	if err := Replace(path, []byte("new")); err == nil || !strings.Contains(err.Error(), "is a pipe") {
		t.Errorf("written: %v", err)
	}
	if _, err := NewLock(path); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("locked: %v", err)
	}
	holds(t, filepath.Dir(path), map[string]string{"model.onnx": "p---------"})
}

// Devices are written to, and a full device gives an error.
func TestDevice(t *testing.T) {
	if os.Getuid() == 0 { // a bug must not replace a device of the system by a file
		t.Chdir(t.TempDir())
	} else {
		t.Chdir("/dev")
	}
	for name, c := range map[string]struct {
		minor int
		want  string
	}{"null": {3, ""}, "full": {7, "no space left"}} {
		if os.Getuid() == 0 {
			if err := syscall.Mknod(name, syscall.S_IFCHR|0o666, 1<<8|c.minor); err != nil {
				t.Skipf("root cannot make a device here: %v", err)
			}
		}
		if info, err := os.Stat(name); err != nil || info.Mode()&os.ModeDevice == 0 {
			t.Skipf("there is no device %s here: %v", name, err)
		}
		err := Write(name, []byte("new"), WriteOptions{AllowStream: true})
		if (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
		if info, err := os.Stat(name); err != nil || info.Mode()&os.ModeDevice == 0 {
			t.Fatalf("%s is not a device any more", name)
		}
	}
}

const child = "MIPLC_TEST_CHILD"

// The standard output can be a pipe or a file that the shell opened.
func TestStandardOutput(t *testing.T) {
	if os.Getenv(child) != "" {
		os.Stdout.WriteString("before ")
		if err := Write("/dev/stdout", []byte("new"), WriteOptions{AllowStream: true}); err != nil {
			t.Fatal(err)
		}
		os.Stdout.WriteString(" after")
		os.Exit(0)
	}
	if _, err := os.Stat("/dev/stdout"); err != nil {
		t.Skipf("there is no /dev/stdout here: %v", err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestStandardOutput$")
	cmd.Env = append(os.Environ(), child+"=1")
	var piped bytes.Buffer
	cmd.Stdout = &piped
	if err := cmd.Run(); err != nil || piped.String() != "before new after" {
		t.Errorf("%v, %q", err, piped.String())
	}
	file, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	again := exec.Command(cmd.Args[0], cmd.Args[1:]...)
	again.Env, again.Stdout = cmd.Env, file
	if err := again.Run(); err != nil {
		t.Error(err)
	}
	if content, err := os.ReadFile(file.Name()); err != nil || string(content) != "before new after" {
		t.Errorf("%v, %q", err, content)
	}
}

// If the disk is full, the old file remains and no temporary file is left. A limit on the file size
// simulates the full disk.
func TestFullDisk(t *testing.T) {
	if dir := os.Getenv(child); dir != "" {
		signal.Ignore(syscall.SIGXFSZ)
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 100, Max: 100}); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"a", "x/y/b"} {
			if err := Replace(filepath.Join(dir, name), make([]byte, 1000)); err == nil ||
				!strings.Contains(err.Error(), "cannot write "+filepath.Join(dir, name)) {
				t.Errorf("error %v", err)
			}
		}
		return
	}
	dir := folder(t, map[string]string{"a": "old"})
	cmd := exec.Command(os.Args[0], "-test.run=^TestFullDisk$")
	cmd.Env = append(os.Environ(), child+"="+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	holds(t, dir, map[string]string{"a": "old"})
}

// The temporary file of a killed process is removed by the next write of the same file. That of a
// running process is kept.
func TestKilled(t *testing.T) {
	if dir := os.Getenv(child); dir != "" {
		if _, err := Create(filepath.Join(dir, "a"), WriteOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(os.Getpid(), syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		select {}
	}
	dir := folder(t, nil)
	cmd := exec.Command(os.Args[0], "-test.run=^TestKilled$")
	cmd.Env = append(os.Environ(), child+"="+dir)
	if err := cmd.Run(); err == nil {
		t.Fatal("the process was not killed")
	}
	if left := tree(t, dir); len(left) != 1 {
		t.Fatalf("left %v, want the temporary file", left)
	}
	alive, err := Create(filepath.Join(dir, "a"), WriteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer alive.Discard()
	if err := Write(filepath.Join(dir, "a"), []byte("new"), WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	holds(t, dir, map[string]string{"a": "new", filepath.Base(alive.Name()): ""})
}

// Concurrent writers of one file do not remove the temporary files of each other.
func TestManyWriters(t *testing.T) {
	dir := t.TempDir()
	done := make(chan error)
	for range 8 {
		go func() {
			var err error
			for range 50 {
				err = errors.Join(err, Replace(filepath.Join(dir, "a"), []byte("new")))
			}
			done <- err
		}()
	}
	for range 8 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	holds(t, dir, map[string]string{"a": "new"})
}

// DiscardAll removes the temporary files of a process that exits early. A goroutine that creates a file later waits
// for the end of the process, and makes no folder.
func TestDiscardAll(t *testing.T) {
	if dir := os.Getenv(child); dir != "" {
		for _, name := range []string{"a", "x/b"} {
			if _, err := Create(filepath.Join(dir, name), WriteOptions{Force: true}); err != nil {
				t.Fatal(err)
			}
		}
		DiscardAll()
		go Create(filepath.Join(dir, "late", "c"), WriteOptions{})
		for range 100 { // until the goroutine waits
			if _, err := os.Stat(filepath.Join(dir, "late")); err == nil {
				t.Fatal("the folder of a late file was made")
			}
			time.Sleep(time.Millisecond)
		}
		os.Exit(0)
	}
	dir := folder(t, map[string]string{"a": "old"})
	cmd := exec.Command(os.Args[0], "-test.run=^TestDiscardAll$")
	cmd.Env = append(os.Environ(), child+"="+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	holds(t, dir, map[string]string{"a": "old"})
}
