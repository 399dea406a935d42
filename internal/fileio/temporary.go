// Temporary files and folders, and what is left of them after a crash.

package fileio

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// maxLinks is the maximum number of symbolic links to follow, like on Linux.
const maxLinks = 40

// follow resolves the links of a path. info is nil if the target does not exist.
func follow(path string) (target string, info fs.FileInfo, err error) {
	for range maxLinks {
		info, err := os.Lstat(path)
		if errors.Is(err, fs.ErrNotExist) {
			return path, nil, nil
		}
		if err != nil || info.Mode()&fs.ModeSymlink == 0 {
			return path, info, err
		}
		to, err := os.Readlink(path)
		if err != nil {
			return "", nil, err
		}
		if !filepath.IsAbs(to) {
			folder, err := filepath.EvalSymlinks(filepath.Dir(path)) // ".." in the link is relative to this folder
			if err != nil {
				return "", nil, err
			}
			to = filepath.Join(folder, to)
		}
		path = to
	}
	return "", nil, errors.New("too many symbolic links")
}

// Names of temporary files are ".STEM.miplc-RANDOM.EXT": hidden, and unlike those of users.
const tempInfix = ".miplc-"

// maxStem keeps temporary names within the limits of file systems.
const maxStem = 120

func tempNameParts(name string) (prefix, ext string) {
	ext = filepath.Ext(name)
	stem := strings.TrimSuffix(name, ext)
	if len(ext) > maxStem || stem == "" {
		stem, ext = name, ""
	}
	if len(stem) > maxStem {
		stem = strings.ToValidUTF8(stem[:maxStem], "")
	}
	return "." + stem + tempInfix, ext
}

// createTemp creates the temporary file with default permissions and locks it until release is
// called.
func createTemp(folder, name string) (f *os.File, release func(), err error) {
	prefix, ext := tempNameParts(name)
	for {
		path := filepath.Join(folder, fmt.Sprintf("%s%08x%s", prefix, rand.Uint32(), ext))
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		if release := lockTemp(path); release != nil {
			if AtPath(f) {
				return f, release, nil
			}
			release()
		}
		f.Close() // removed by another process before it was locked
	}
}

// Sweep removes the temporary files that killed processes left for a path. No process may be writing to
// the path.
func Sweep(path string) error { return sweep(path, func(string) bool { return true }) }

func sweep(path string, stale func(temp string) bool) error {
	folder, name := filepath.Split(path)
	entries, err := os.ReadDir(filepath.Clean(folder))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	prefix, ext := tempNameParts(name)
	temp := regexp.MustCompile("^" + regexp.QuoteMeta(prefix) + "[0-9a-f]{8}" + regexp.QuoteMeta(ext) + "$")
	for _, e := range entries {
		if path := filepath.Join(folder, e.Name()); e.Type().IsRegular() && temp.MatchString(e.Name()) && stale(path) {
			err = errors.Join(err, os.Remove(path))
		}
	}
	return err
}

// MakeFolder creates a folder with missing parents, and returns the created ones, innermost first. It does not create a
// folder ~ in the working directory, which a shell would have replaced by the home folder in most places.
func MakeFolder(path string) (created []string, err error) {
	for at := filepath.Clean(path); ; at = filepath.Dir(at) {
		if _, err := os.Stat(at); !errors.Is(err, fs.ErrNotExist) || at == filepath.Dir(at) {
			break
		}
		created = append(created, at)
	}
	if slices.Contains(created, "~") {
		return nil, fmt.Errorf("%s: ~ is the home folder only if a shell replaces it: write --output ~/... with a space, or "+
			"the whole path", path)
	}
	if err := os.MkdirAll(path, 0o777); err != nil {
		removeFolders(created)
		if failed := (*fs.PathError)(nil); errors.As(err, &failed) && failed.Path == path {
			err = failed.Err
		}
		return nil, fmt.Errorf("the folder %s cannot be created: %w; choose another folder", path, err)
	}
	return created, nil
}

// removeFolders removes those of the folders that are empty, in order.
func removeFolders(list []string) {
	for _, folder := range list {
		_ = os.Remove(folder) // fails if the folder contains files
	}
}

// syncFolder syncs the names in a folder to the disk, if the system supports it.
func syncFolder(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	defer d.Close()
	_ = d.Sync() // some file systems do not support it
	return nil
}
