// Package memory compares the memory that work needs with the available memory, so that settings
// which need too much are rejected with a message before the system kills the process.
package memory

import (
	"fmt"
	"math"
	"runtime/debug"
	"strings"
)

// Room is the number of bytes that the process may still allocate, and the limit that determines
// it. Bytes is infinite if it is not known.
type Room struct {
	Bytes float64
	Bound string
}

// Available returns the smallest of the free memory of the machine, the limits of the control
// groups and of the process, and GOMEMLIMIT.
func Available() Room {
	room := Room{Bytes: math.Inf(1)}
	for _, r := range system() {
		if r.Bytes < room.Bytes {
			room = r
		}
	}
	if limit := debug.SetMemoryLimit(-1); float64(limit) < room.Bytes {
		room = Room{float64(limit), "GOMEMLIMIT"}
	}
	return room
}

// Tighten makes the garbage collector run whenever the heap has grown by a tenth, until undo
// is called, which also returns unused memory to the system. By default the heap may double,
// which matters where most of it is a few large buffers. Collecting those is cheap.
func Tighten() (undo func()) {
	before := debug.SetGCPercent(10)
	return func() {
		debug.SetGCPercent(before)
		debug.FreeOSMemory()
	}
}

// Check returns an error if work needs more bytes than are available. The error begins with the name
// of the work, such as "training".
func Check(what string, bytes float64) error { return Available().Check(what, bytes) }

// Check returns an error if work needs more bytes than the room has.
func (r Room) Check(what string, bytes float64) error {
	if bytes > r.Bytes {
		return fmt.Errorf("%s takes at least %s of memory; there are %s (%s)", what, Size(bytes), Size(r.Bytes), r.Bound)
	}
	return nil
}

// Size formats a number of bytes, e.g. "1.5 GiB" or "4 MiB".
func Size(bytes float64) string {
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
