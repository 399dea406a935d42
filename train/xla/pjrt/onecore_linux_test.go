// Work on one core stays there.

package pjrt

import (
	"testing"

	"golang.org/x/sys/unix"
)

// A function run on one core sees one core. Afterwards the thread has all its cores again.
func TestOnOneCore(t *testing.T) {
	cores := func() int {
		var set unix.CPUSet
		if err := unix.SchedGetaffinity(0, &set); err != nil {
			t.Fatal(err)
		}
		return set.Count()
	}
	before := cores()
	for range before + 1 {
		OnOneCore(func() {
			if n := cores(); n != 1 {
				t.Errorf("%d cores within", n)
			}
		})
	}
	if n := cores(); n != before {
		t.Errorf("%d cores afterwards, %d before", n, before)
	}
}
