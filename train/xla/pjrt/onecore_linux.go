// Work on one core.

package pjrt

import (
	"runtime"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// turn counts the calls of OnOneCore, which use the cores in turn.
var turn atomic.Int64

// OnOneCore runs f on a thread that may use only one core. XLA divides the loops of a program for
// CPUs into as many parts as the compiling thread may use cores.
func OnOneCore(f func()) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var all, one unix.CPUSet
	if unix.SchedGetaffinity(0, &all) != nil || all.Count() < 2 {
		f()
		return
	}
	nth := int(turn.Add(1)) % all.Count()
	for core := 0; ; core++ {
		if !all.IsSet(core) {
			continue
		}
		if nth--; nth < 0 {
			one.Set(core)
			break
		}
	}
	if unix.SchedSetaffinity(0, &one) == nil {
		defer unix.SchedSetaffinity(0, &all)
	}
	f()
}
