//go:build unix

// Owners of files, and the users who can change them.

package libraries

import (
	"fmt"
	"io/fs"
	"os/user"
	"strconv"
	"syscall"
)

// owned reports a file or folder that belongs neither to root nor to the user with the ID uid.
func owned(path string, info fs.FileInfo, uid int) error {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || stat.Uid == 0 || int(stat.Uid) == uid {
		return nil
	}
	owner := fmt.Sprintf("user ID %d", stat.Uid)
	if u, err := user.LookupId(strconv.Itoa(int(stat.Uid))); err == nil {
		owner = "user " + u.Username
	}
	return fmt.Errorf("%s belongs to %s, not to root or to the user who runs this program", path, owner)
}

func worldWritable(info fs.FileInfo) bool { return info.Mode().Perm()&0o002 != 0 }
