// Package memory is the one place that compares what work will take with the
// memory there is, so that numbers of a user's are refused by a sentence and not by
// the end of the process.
package memory

import (
	"fmt"
	"math"
	"runtime/debug"
)

// Room is how many bytes the process may still take, and what bounds them. Bytes
// is infinite where that is not known.
type Room struct {
	Bytes float64
	Bound string
}

// Available finds the room there is: the smallest of what the machine has free,
// what the limits of the control groups and of the process leave, and GOMEMLIMIT.
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

// shortError says that there is less memory than work takes.
type shortError struct {
	What  string  // the work, as the subject of a sentence: "training"
	Bytes float64 // what it takes at the least
	Room  Room
}

func (e *shortError) Error() string {
	return fmt.Sprintf("%s takes at least %s of memory; there are %s (%s)", e.What, Size(e.Bytes), Size(e.Room.Bytes), e.Room.Bound)
}

// Check returns a *shortError when the work takes more bytes than there are.
func Check(what string, bytes float64) error { return Available().Check(what, bytes) }

// Check returns a *shortError when the work takes more bytes than the room has.
func (r Room) Check(what string, bytes float64) error {
	if bytes > r.Bytes {
		return &shortError{what, bytes, r}
	}
	return nil
}

// Size prints a number of bytes for people.
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
	return fmt.Sprintf("%.1f %s", bytes, units[i])
}
