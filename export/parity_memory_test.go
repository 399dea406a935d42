// A memory limit for the tests of this package, whose values of images are large and short-lived.

package export_test

import (
	"os"
	"runtime/debug"
	"testing"
)

// Values of images in float64 are large and short-lived. Without a memory limit the heap grows to
// several times the live memory before they are collected.
func TestMain(m *testing.M) {
	debug.SetMemoryLimit(1 << 30)
	os.Exit(m.Run())
}
