package pinned

import (
	"io/fs"
	"syscall"
)

// changeTime returns the time of the last change of a file in nanoseconds. Unlike the
// modification time, programs cannot set it.
func changeTime(info fs.FileInfo) int64 {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0
	}
	return stat.Ctim.Nano()
}
