// The memory of a test process.

package testsupport

import (
	"fmt"
	"os"
	"testing"
)

// Resident returns the resident memory of the process in bytes, 0 if the system does not report it.
func Resident(t testing.TB) int64 {
	t.Helper()
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	var pages int64
	if _, err := fmt.Sscan(string(statm), new(int64), &pages); err != nil {
		t.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}
