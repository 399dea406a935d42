//go:build unix

package infile

import "syscall"

// NonBlocking is the flag of os.OpenFile with which opening a named pipe does not wait for the
// process at its other end.
const NonBlocking = syscall.O_NONBLOCK
