//go:build unix

// Who owns a file, and who can change it.

package native

import (
	"fmt"
	"io/fs"
	"os/user"
	"strconv"
	"syscall"
)

// ownerOf returns the user ID of the owner of a file.
func ownerOf(info fs.FileInfo) (id int, known bool) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(stat.Uid), true
}

func worldWritable(info fs.FileInfo) bool { return info.Mode().Perm()&0o002 != 0 }

// nameOf returns the name of a user for an error message.
func nameOf(id int) string {
	if u, err := user.LookupId(strconv.Itoa(id)); err == nil {
		return "user " + u.Username
	}
	return fmt.Sprintf("user ID %d", id)
}
