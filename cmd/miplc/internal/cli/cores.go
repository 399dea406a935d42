// How many processors miplc uses on a cluster that assigns them to its tasks.

package cli

import (
	"runtime"
	"strconv"
)

// processorVariables are the variables with the number of processors that Slurm assigned to a task.
var processorVariables = []string{"SLURM_CPUS_PER_TASK", "SLURM_CPUS_ON_NODE"}

// limitProcessors limits the process to the processors that Slurm assigned to it, because not every cluster
// enforces that. The Go runtime itself respects affinity and control groups. GOMAXPROCS has
// precedence.
func limitProcessors(getenv func(string) string) {
	if getenv("GOMAXPROCS") != "" {
		return
	}
	for _, name := range processorVariables {
		if n, err := strconv.Atoi(getenv(name)); err == nil && n > 0 {
			runtime.GOMAXPROCS(min(n, runtime.GOMAXPROCS(0)))
			return
		}
	}
}
