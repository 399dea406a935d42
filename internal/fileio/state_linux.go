// States of files, by which a change is noticed.

package fileio

import (
	"fmt"
	"io/fs"
	"syscall"
	"time"
)

// State returns text that differs between two states of a file, and the time of its last change.
// Programs can set the modification time of a file, but not the time of its status change. ok is
// false if the system does not provide it.
func State(info fs.FileInfo) (text string, changed time.Time, ok bool) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "", time.Time{}, false
	}
	changed = time.Unix(stat.Ctim.Unix())
	return fmt.Sprint(stat.Dev, " ", stat.Ino, " ", stat.Size, " ", info.ModTime().UnixNano(), " ", changed.UnixNano()),
		changed, true
}
