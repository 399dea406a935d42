// Command peak runs go test and fails if a process of a test needs too much memory:
//
//	peak LIMIT FIGURES go test ./...
//
// LIMIT is in MiB. For each package, peak writes the largest resident set of a test process to the
// file FIGURES, in MiB, in descending order. It reads /proc while the tests run, because go test
// -exec would disable the cache of test results. Packages whose results are cached, and processes
// that end within the interval, have no figure.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const interval = 100 * time.Millisecond

func main() {
	if len(os.Args) < 4 {
		fmt.Fprintln(os.Stderr, "usage: peak LIMIT FIGURES COMMAND [ARGUMENT ...]")
		os.Exit(2)
	}
	limit, err := strconv.Atoi(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, "peak:", err)
		os.Exit(2)
	}
	code, peaks, err := run(os.Args[3], os.Args[4:]...)
	if err == nil {
		err = write(os.Args[2], peaks)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "peak:", err)
		os.Exit(1)
	}
	for folder, used := range peaks {
		if used > limit {
			fmt.Printf("FAIL: a process of the tests in %s needs %d MiB of memory; the limit is %d MiB\n", relative(folder),
				used, limit)
			code = max(code, 1)
		}
	}
	os.Exit(code)
}

// run runs a command. It returns its exit code and the largest resident set of a test process of
// each package, in MiB, by the folder of the package.
func run(program string, arguments ...string) (code int, peaks map[string]int, err error) {
	cmd := exec.Command(program, arguments...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		return 0, nil, err
	}
	peaks = map[string]int{}
	for {
		var status syscall.WaitStatus
		switch pid, err := syscall.Wait4(cmd.Process.Pid, &status, syscall.WNOHANG, nil); {
		case err != nil && !errors.Is(err, syscall.EINTR):
			return 0, nil, err
		case pid == cmd.Process.Pid && status.Exited():
			return status.ExitStatus(), peaks, nil
		case pid == cmd.Process.Pid: // a signal
			return 1, peaks, nil
		}
		sample(peaks, cmd.Process.Pid)
		time.Sleep(interval)
	}
}

// process is a line of the process table.
type process struct {
	parent int
	folder string // of a test binary: its package
	used   int    // largest resident set so far, in MiB
}

// sample updates the peaks with the running descendants of the process root. The memory of a
// process counts for the test binary that started it.
func sample(peaks map[string]int, root int) {
	all := processes()
	for pid, p := range all {
		folder := ""
		for at := pid; at != root; at = all[at].parent {
			if _, ok := all[at]; !ok { // not below root
				folder = ""
				break
			}
			if all[at].folder != "" {
				folder = all[at].folder
			}
		}
		if folder != "" {
			peaks[folder] = max(peaks[folder], p.used)
		}
	}
}

// processes reads /proc. It skips processes that end meanwhile.
func processes() map[int]process {
	all := map[int]process{}
	files, _ := filepath.Glob("/proc/[0-9]*/status")
	for _, file := range files {
		dir := filepath.Dir(file)
		pid, _ := strconv.Atoi(filepath.Base(dir))
		f, err := os.Open(file)
		if err != nil {
			continue
		}
		var p process
		for lines := bufio.NewScanner(f); lines.Scan(); {
			name, value, _ := strings.Cut(lines.Text(), ":")
			number, _, _ := strings.Cut(strings.TrimSpace(value), " ")
			switch name {
			case "PPid":
				p.parent, _ = strconv.Atoi(number)
			case "VmHWM":
				kib, _ := strconv.Atoi(number)
				p.used = kib / 1024
			}
		}
		f.Close()
		if program, err := os.Readlink(dir + "/exe"); err == nil && strings.HasSuffix(program, ".test") {
			p.folder, _ = os.Readlink(dir + "/cwd")
		}
		all[pid] = p
	}
	return all
}

// write writes the peaks to a file in descending order.
func write(path string, peaks map[string]int) error {
	var text strings.Builder
	for _, folder := range slices.SortedFunc(maps.Keys(peaks), func(a, b string) int { return peaks[b] - peaks[a] }) {
		fmt.Fprintf(&text, "%6d MiB  %s\n", peaks[folder], relative(folder))
	}
	return os.WriteFile(path, []byte(text.String()), 0o644)
}

// relative returns the path of a folder relative to the current one.
func relative(folder string) string {
	if root, err := os.Getwd(); err == nil {
		if name, err := filepath.Rel(root, folder); err == nil {
			return name
		}
	}
	return folder
}
