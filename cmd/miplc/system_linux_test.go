// What tests measure and set of processes, on Linux.

package main

import (
	"os"
	"syscall"
)

// memoryUsed returns the largest resident set of a process that has ended, in bytes.
func memoryUsed(state *os.ProcessState) int64 { return state.SysUsage().(*syscall.Rusage).Maxrss << 10 }

// ownSession returns the attributes of a process in a new session in the test under heavy load,
// else nil.
func ownSession() *syscall.SysProcAttr {
	if os.Getenv("MIPLC_TEST_LOAD") == "" {
		return nil
	}
	return &syscall.SysProcAttr{Setsid: true}
}

// maxFiles returns the number of files that a process may open.
func maxFiles() uint64 {
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		return 0
	}
	return files.Cur
}
