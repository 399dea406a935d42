package serve

import (
	"fmt"
	"os"
	"syscall"
	"time"
)

// identity returns text that differs between two states of a file, and the time of its
// last change. A program can set the time of modification of a file, but not that of its
// change of status. ok is false where the system does not tell.
func identity(info os.FileInfo) (text string, changed time.Time, ok bool) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "", time.Time{}, false
	}
	changed = time.Unix(stat.Ctim.Unix())
	return fmt.Sprint(stat.Dev, stat.Ino, stat.Size, info.ModTime().UnixNano(), changed.UnixNano()), changed, true
}
