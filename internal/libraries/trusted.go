// The rule of trust: files that may be loaded as code or read as configuration although the user did not name them.
// Such a file, and every folder above it, must belong to root or to the user who runs the process, and other users must
// not be able to write to them. Otherwise another user of the machine could run code as this user by putting a library
// into a folder that is searched. Truncated libraries are rejected, and errors of the loader explained.

package libraries

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// CheckTrust returns an error that says why the file at path must not be used, or nil. It checks the file, its folders,
// and the folders of all symbolic links on the way to it. It rejects relative paths, because they depend on the working
// folder, which may be an unpacked download. On systems without Unix permissions, only that last rule applies.
func CheckTrust(path string) error {
	return check(path, os.Geteuid())
}

// check is CheckTrust for the user with a given ID.
func check(path string, user int) error {
	if !filepath.IsAbs(path) {
		return errors.New("the path is relative, so it depends on the working folder")
	}
	real, folders, err := resolve(path)
	if err != nil {
		return err
	}
	info, err := os.Lstat(real)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return errors.New("it is not a regular file")
	}
	err = closed(real, info, user)
	for _, dir := range folders {
		err = cmp.Or(err, folder(dir, user))
	}
	return err
}

// maxLinks is the maximum number of symbolic links to follow, like on Linux.
const maxLinks = 40

// resolve returns an absolute path without symbolic links, and the folders of these links and of the file, themselves
// without links.
func resolve(path string) (real string, folders []string, err error) {
	split := func(path string) []string {
		return strings.Split(strings.TrimPrefix(path, filepath.VolumeName(path)), string(filepath.Separator))
	}
	root := func(path string) string { return filepath.VolumeName(path) + string(filepath.Separator) }
	at, rest := root(path), split(filepath.Clean(path))
	for links := 0; len(rest) > 0; {
		next := filepath.Join(at, rest[0])
		info, err := os.Lstat(next)
		if err != nil {
			return "", nil, err
		}
		rest = rest[1:]
		if info.Mode()&fs.ModeSymlink == 0 {
			at = next
			continue
		}
		target, err := os.Readlink(next)
		if links++; err != nil || links > maxLinks {
			return "", nil, cmp.Or(err, fmt.Errorf("%s leads through more than %d symbolic links", path, maxLinks))
		}
		folders, rest = append(folders, at), append(split(target), rest...)
		if filepath.IsAbs(target) {
			at = root(target)
		}
	}
	return at, append(folders, filepath.Dir(at)), nil
}

// checkFolderTrust is like CheckTrust, for a folder into which such files are written.
func checkFolderTrust(dir string) error {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	real, err := filepath.EvalSymlinks(abs)
	if err != nil {
		return err
	}
	return folder(real, os.Geteuid())
}

// folder checks a folder and those above it. The folders above may be writable for all if they are
// sticky, like /tmp: there, users cannot rename or replace files of others.
func folder(dir string, user int) error {
	for at := filepath.Clean(dir); ; at = filepath.Dir(at) {
		info, err := os.Stat(at)
		if err != nil {
			return err
		}
		if at == dir || info.Mode()&fs.ModeSticky == 0 {
			err = closed(at, info, user)
		} else {
			err = owned(at, info, user)
		}
		if err != nil || at == filepath.Dir(at) {
			return err
		}
	}
}

// closed reports a file or folder that other users own or can change.
func closed(path string, info fs.FileInfo, user int) error {
	if err := owned(path, info, user); err != nil {
		return err
	}
	if worldWritable(info) {
		return fmt.Errorf("every user can write to %s", path)
	}
	return nil
}
