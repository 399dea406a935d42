package outfile

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// maxLinks is how many symbolic links are followed, as many as Linux follows.
const maxLinks = 40

// follow returns what a path leads to, which may be missing: info is then nil.
func follow(path string) (place string, info fs.FileInfo, err error) {
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
			folder, err := filepath.EvalSymlinks(filepath.Dir(path)) // ".." in the link counts from there
			if err != nil {
				return "", nil, err
			}
			to = filepath.Join(folder, to)
		}
		path = to
	}
	return "", nil, errors.New("too many symbolic links")
}

// Names of files aside are ".STEM.miplc-RANDOM.EXT": hidden, of the same kind,
// and no user's.
const asideMark = ".miplc-"

// maxStem keeps the name aside of a long name within what file systems take.
const maxStem = 120

func asideParts(name string) (prefix, ext string) {
	ext = filepath.Ext(name)
	stem := strings.TrimSuffix(name, ext)
	if len(ext) > maxStem || stem == "" {
		stem, ext = name, ""
	}
	if len(stem) > maxStem {
		stem = strings.ToValidUTF8(stem[:maxStem], "")
	}
	return "." + stem + asideMark, ext
}

// createAside makes the file aside with the permissions that new files have, and
// holds it until release is called.
func createAside(folder, name string) (f *os.File, release func(), err error) {
	prefix, ext := asideParts(name)
	for {
		path := filepath.Join(folder, fmt.Sprintf("%s%08x%s", prefix, rand.Uint32(), ext))
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		if release := hold(path); release != nil {
			if named, err := os.Lstat(path); err == nil && same(f, named) {
				return f, release, nil
			}
			release()
		}
		f.Close() // swept before it was held
	}
}

func same(f *os.File, named fs.FileInfo) bool {
	own, err := f.Stat()
	return err == nil && os.SameFile(own, named)
}

// Sweep removes what killed processes were still writing aside for a path. The
// caller knows that nobody writes it now.
func Sweep(path string) error { return sweep(path, func(string) bool { return true }) }

func sweep(path string, stale func(aside string) bool) error {
	folder, name := filepath.Split(path)
	entries, err := os.ReadDir(filepath.Clean(folder))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	prefix, ext := asideParts(name)
	aside := regexp.MustCompile("^" + regexp.QuoteMeta(prefix) + "[0-9a-f]{8}" + regexp.QuoteMeta(ext) + "$")
	for _, e := range entries {
		if path := filepath.Join(folder, e.Name()); e.Type().IsRegular() && aside.MatchString(e.Name()) && stale(path) {
			err = errors.Join(err, os.Remove(path))
		}
	}
	return err
}

// MakeFolder makes a folder with those above it that are missing, and gives
// the ones that it made, the innermost first.
func MakeFolder(path string) (made []string, err error) {
	for at := filepath.Clean(path); ; at = filepath.Dir(at) {
		if _, err := os.Stat(at); !errors.Is(err, fs.ErrNotExist) || at == filepath.Dir(at) {
			break
		}
		made = append(made, at)
	}
	if err := os.MkdirAll(path, 0o777); err != nil {
		RemoveFolders(made)
		return nil, err
	}
	return made, nil
}

// RemoveFolders removes folders that are empty, in their order; those that are
// not stay.
func RemoveFolders(list []string) {
	for _, folder := range list {
		_ = os.Remove(folder) // fails, rightly, where files are in it
	}
}

// syncFolder forces the names in a folder to the disk where the system can.
func syncFolder(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	defer d.Close()
	_ = d.Sync() // some file systems refuse; the names are there anyway
	return nil
}
