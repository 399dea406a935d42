package cli

import (
	"runtime"
	"strconv"
)

// allotted are the variables in which Slurm says how many processors a task has.
var allotted = []string{"SLURM_CPUS_PER_TASK", "SLURM_CPUS_ON_NODE"}

// allot lets the process take no more processors than Slurm gave to it, which not
// every cluster enforces. What affinity and the limits of control groups leave the
// Go runtime finds by itself, and GOMAXPROCS is the user's word.
func allot(getenv func(string) string) {
	if getenv("GOMAXPROCS") != "" {
		return
	}
	for _, name := range allotted {
		if n, err := strconv.Atoi(getenv(name)); err == nil && n > 0 {
			runtime.GOMAXPROCS(min(n, runtime.GOMAXPROCS(0)))
			return
		}
	}
}
