// Package resources keeps work within the memory and the processors of the machine. It compares the memory that work
// needs with the available memory, so that work that needs too much is rejected with a message before the system kills
// the process, and it runs functions in parallel and keeps their panics from ending the program.
package resources

import (
	"fmt"
	"runtime/debug"
	"strings"
	"sync"
)

// Budget is the number of bytes that work may use, and the limit that determines it.
type Budget struct {
	Bytes float64
	Bound string
}

// Memory returns the memory that work may use: the smallest of the free memory of the machine, the limits of the
// control groups and of the process, and GOMEMLIMIT.
func Memory() Budget {
	budget := Budget{float64(debug.SetMemoryLimit(-1)), "GOMEMLIMIT"}
	for _, b := range system() {
		if b.Bytes < budget.Bytes {
			budget = b
		}
	}
	return budget
}

// Check returns a *MemoryError if bytes exceed the budget. The message begins with what needs the bytes, such as
// "training wide" or "the text", and ends with advice on how to need fewer.
func (b Budget) Check(what string, bytes float64, advice string) error {
	if bytes > b.Bytes {
		return &MemoryError{what, bytes, b, advice}
	}
	return nil
}

// MemoryError reports work that needs more memory than it may use.
type MemoryError struct {
	What   string
	Bytes  float64 // a lower bound of what the work needs; 0: only known to exceed the budget
	Budget Budget
	Advice string
}

func (e *MemoryError) Error() string {
	need := "at least " + Bytes(e.Bytes) + " of memory; " + Bytes(e.Budget.Bytes) + " are available"
	if e.Bytes == 0 {
		need = "more than " + Bytes(e.Budget.Bytes) + " of memory"
	}
	return fmt.Sprintf("%s needs %s (%s): %s", e.What, need, e.Budget.Bound, e.Advice)
}

// limited counts the calls of LimitHeapGrowth that were not undone, because the setting of the garbage collector is one
// for the whole process.
var limited struct {
	mu     sync.Mutex
	calls  int
	before int // percentage before the first call
}

// LimitHeapGrowth makes the garbage collector run whenever the heap has grown by a tenth, until undo
// is called, which also returns unused memory to the system. By default the heap may double,
// which matters where most of it is a few large buffers. Collecting those is cheap. Several calls may overlap: the last
// undo restores the default.
func LimitHeapGrowth() (undo func()) {
	limited.mu.Lock()
	defer limited.mu.Unlock()
	if limited.calls++; limited.calls == 1 {
		limited.before = debug.SetGCPercent(10)
	}
	return sync.OnceFunc(func() {
		limited.mu.Lock()
		if limited.calls--; limited.calls == 0 {
			debug.SetGCPercent(limited.before)
		}
		limited.mu.Unlock()
		debug.FreeOSMemory()
	})
}

// Bytes formats a number of bytes, e.g. "1.5 GiB" or "4 MiB".
func Bytes(bytes float64) string {
	units := []string{"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
	i := 0
	for ; bytes >= 1024 && i+1 < len(units); i++ {
		bytes /= 1024
	}
	switch {
	case bytes >= 1024:
		return fmt.Sprintf("%.1g %s", bytes, units[i])
	case i == 0 || bytes >= 100:
		return fmt.Sprintf("%.0f %s", bytes, units[i])
	}
	return strings.TrimSuffix(fmt.Sprintf("%.1f", bytes), ".0") + " " + units[i]
}
