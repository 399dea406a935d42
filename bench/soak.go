// Does a long training leak memory? Samples of the memory of the process after many steps.

package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
)

// sample is the memory of the process after a number of steps.
type sample struct {
	Step   int `json:"step"`
	RSSKB  int `json:"rss_kb"`  // of the process
	HeapKB int `json:"heap_kb"` // Go's heap after a collection; the record of each epoch adds to it
}

// soak trains and samples the memory of the process.
func soak(r request) (any, error) {
	var samples []sample
	var failed error
	at, next := 0, 1000
	err := r.train(func() bool {
		at++
		if at == next || at == r.steps {
			rss, err := resident()
			if err != nil {
				failed = err
				return true
			}
			var m runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&m)
			samples = append(samples, sample{at, rss, int(m.HeapAlloc / 1024)})
			if next *= 10; at >= 10000 {
				next = at + 10000
			}
		}
		return at == r.steps
	}, func() {})
	if err == nil {
		err = failed
	}
	return samples, err
}

// resident returns the resident memory of this process in KiB.
func resident() (int, error) {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, fmt.Errorf("the memory of a process is read from /proc, which this system lacks: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			return strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(value), " kB"))
		}
	}
	return 0, fmt.Errorf("/proc/self/status has no VmRSS")
}
