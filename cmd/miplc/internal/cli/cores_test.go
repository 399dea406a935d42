// A task uses no more processors than Slurm assigned to it.

package cli

import (
	"runtime"
	"strings"
	"testing"
)

// A process uses the processors that Slurm assigned, and never more than it had.
func TestAllot(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(before)
	for env, want := range map[string]int{
		"":                      8,
		"SLURM_CPUS_PER_TASK=3": 3,
		"SLURM_CPUS_ON_NODE=2":  2,
		"SLURM_CPUS_PER_TASK=3 SLURM_CPUS_ON_NODE=6": 3,
		"SLURM_CPUS_PER_TASK=64":                     8,
		"SLURM_CPUS_PER_TASK=0 SLURM_CPUS_ON_NODE=x": 8,
		"SLURM_CPUS_PER_TASK=3 GOMAXPROCS=5":         8,
	} {
		values := map[string]string{}
		for _, pair := range strings.Fields(env) {
			name, value, _ := strings.Cut(pair, "=")
			values[name] = value
		}
		runtime.GOMAXPROCS(8)
		limitProcessors(func(name string) string { return values[name] })
		if got := runtime.GOMAXPROCS(0); got != want {
			t.Errorf("%q: %d processors, want %d", env, got, want)
		}
	}
}
