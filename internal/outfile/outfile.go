// Package outfile is the one writer of files: a file is there as a whole or not
// at all, and what a user has is replaced only where the user said so.
//
// google/renameio does a part of it: it renames over symbolic links, devices and
// pipes, does not force the folder to the disk, and has no Windows.
package outfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// Options say what a file may replace.
type Options struct {
	Force  bool     // a file that is there
	Inputs []string // but never these, which the command reads; they need not exist
	// Through lets the file be a device, a pipe or the standard output. It is for paths
	// that the user names: a pipe that has the name of a file of miplc would block it.
	Through bool
}

// File is a file on its way. It is written under another name in the folder of
// its place, and gets its own name by Commit.
type File struct {
	path    string   // as the user wrote it
	place   string   // path with symbolic links followed
	through bool     // path is no regular file: Commit copies into it
	aside   *os.File // what is written
	release func()   // ends the hold on it
	options Options
	folders []string // that Create made, the innermost first
	closed  bool
	settled bool // committed or discarded
}

// Create starts a file. Links are followed: the link stays, and what it points to
// is replaced. With Options.Through the content is copied at the end into what is no
// regular file (a device, a pipe, the standard output). Folders that are missing are made. All
// that speaks against the file is told now, before the work whose result it gets.
// Every call is answered by one of Discard, which does nothing after Commit.
func Create(path string, o Options) (*File, error) {
	f := &File{path: path, options: o}
	if err := f.open(); err != nil {
		f.Discard()
		return nil, f.explain(err)
	}
	return f, nil
}

func (f *File) open() (err error) {
	if err = f.look(); err != nil {
		return err
	}
	folder := filepath.Dir(f.place)
	if f.through {
		folder = os.TempDir()
	} else if f.folders, err = MakeFolder(folder); err != nil {
		return err
	}
	pending.Lock() // a signal between the two steps would leave the file
	defer pending.Unlock()
	_ = sweep(filepath.Join(folder, filepath.Base(f.place)), abandoned) // a courtesy to who was killed before
	if f.aside, f.release, err = createAside(folder, filepath.Base(f.place)); err == nil {
		pending.files[f] = true
	}
	return err
}

// look finds the place of the file and all that speaks against writing there.
func (f *File) look() error {
	if f.path == "" || os.IsPathSeparator(f.path[len(f.path)-1]) {
		return refusal(fmt.Sprintf("%q is no name of a file", f.path))
	}
	info, err := os.Stat(f.path)
	if err == nil && (!info.Mode().IsRegular() && !info.IsDir() || stream(info) != nil) {
		if !f.options.Through {
			return refusal(fmt.Sprintf("%s is a pipe, a device or the standard output, not a regular file: remove it, or choose another folder", f.path))
		}
		f.place, f.through = f.path, true
		if info.Mode().IsRegular() { // the shell's: there, but not to be replaced
			return f.options.notRead(f.path)
		}
		return nil
	}
	if f.place, info, err = follow(f.path); err != nil || info == nil {
		return err
	}
	return f.options.mayReplace(f.path, info)
}

// mayReplace says why what is at path must stay.
func (o *Options) mayReplace(path string, info fs.FileInfo) error {
	if info.IsDir() {
		return refusal(fmt.Sprintf("%s is a folder: name a file", path))
	}
	if err := o.notRead(path); err != nil {
		return err
	}
	switch {
	case !o.Force:
		return refusal(fmt.Sprintf("%s exists already: choose another name, or overwrite it with --force", path))
	case info.Mode().Perm()&0o222 == 0:
		return refusal(fmt.Sprintf("%s is write-protected: choose another name, or change its permissions", path))
	}
	return nil
}

// notRead refuses a path that is among the inputs.
func (o *Options) notRead(path string) error {
	if input := Among(path, o.Inputs); input != "" {
		return refusal(fmt.Sprintf("%s is the same file as %s, which is read: choose another name", path, input))
	}
	return nil
}

// Among returns the one of some files that is the same as path, by whatever name or
// link; else "".
func Among(path string, files []string) string {
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	for _, f := range files {
		if other, err := os.Stat(f); err == nil && os.SameFile(info, other) {
			return f
		}
	}
	return ""
}

// Write writes to the file aside.
func (f *File) Write(p []byte) (int, error) {
	n, err := f.aside.Write(p)
	return n, f.explain(err)
}

// Name returns the file aside. It may be read after Finish.
func (f *File) Name() string { return f.aside.Name() }

// IsStdout says that the file is the standard output of the process.
func (f *File) IsStdout() bool {
	info, err := os.Stat(f.path)
	return err == nil && f.through && stream(info) == os.Stdout
}

// Finish forces what was written to the disk. Nothing can be written after it.
func (f *File) Finish() error {
	if f.closed {
		return nil
	}
	f.closed = true
	return f.explain(errors.Join(f.aside.Sync(), f.aside.Close()))
}

// Commit returns the file its name, and the permissions of the file that it
// replaces.
func (f *File) Commit() error {
	if err := f.Finish(); err != nil {
		return err
	}
	if f.through {
		defer f.Discard()
		return f.explain(copyInto(f.path, f.Name()))
	}
	if err := f.look(); err != nil { // it may have appeared meanwhile
		return f.explain(err)
	}
	if info, err := os.Stat(f.place); err == nil {
		if err := os.Chmod(f.Name(), info.Mode().Perm()); err != nil {
			return f.explain(err)
		}
	}
	pending.Lock()
	defer pending.Unlock()
	if err := os.Rename(f.Name(), f.place); err != nil {
		return f.explain(err)
	}
	f.settled = true
	f.release()
	delete(pending.files, f)
	return f.explain(syncFolder(filepath.Dir(f.place)))
}

// Discard removes what has no name yet, and the folders that were made for it.
func (f *File) Discard() {
	pending.Lock()
	defer pending.Unlock()
	f.discard()
}

func (f *File) discard() {
	if f.settled {
		return
	}
	f.settled = true
	if f.aside != nil {
		f.aside.Close()
		os.Remove(f.aside.Name())
		f.release()
		delete(pending.files, f)
	}
	RemoveFolders(f.folders)
}

// pending are the files that have no name yet.
var pending = struct {
	sync.Mutex
	files map[*File]bool
}{files: map[*File]bool{}}

// DiscardAll removes all files that have no name yet. It is for a process about
// to end out of turn.
func DiscardAll() {
	pending.Lock() // for good: nothing is to appear after this
	for f := range pending.files {
		f.discard()
	}
}

// Write writes a file as a whole.
func Write(path string, content []byte, o Options) error {
	f, err := Create(path, o)
	if err != nil {
		return err
	}
	defer f.Discard()
	if _, err := f.Write(content); err != nil {
		return err
	}
	return f.Commit()
}

// Replace writes a file that belongs to miplc, whether it is there or not.
func Replace(path string, content []byte) error { return Write(path, content, Options{Force: true}) }

// ReplaceJSON is Replace with a value as indented JSON.
func ReplaceJSON(path string, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return Replace(path, append(text, '\n'))
}

// Log starts a file that this process alone appends to, line by line, while others
// read it: it has its name from the beginning, and never one that was there, for
// which the error wraps fs.ErrExist. The caller forces what it writes to the disk.
func Log(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o666)
	if err != nil {
		return nil, err
	}
	return f, syncFolder(filepath.Dir(path))
}

// refusal is an error that needs no more words.
type refusal string

func (r refusal) Error() string { return string(r) }

// explain names the file; the name aside says nothing to a person.
func (f *File) explain(err error) error {
	var told refusal
	var at *fs.PathError
	var moved *os.LinkError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &told):
		return told
	case errors.As(err, &at):
		err = at.Err
	case errors.As(err, &moved):
		err = moved.Err
	}
	return refusal(fmt.Sprintf("cannot write %s: %v", f.path, err))
}

// copyInto writes a whole file into what is no regular file.
func copyInto(path, from string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	if info, err := os.Stat(path); err == nil {
		if own := stream(info); own != nil {
			_, err := io.Copy(own, source)
			return err
		}
	}
	target, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source)
	return errors.Join(err, target.Close())
}

// stream returns the standard stream that a file is, or nil. A file that the shell
// redirected a stream to is written through the stream: renaming over it would
// lose what else goes there.
func stream(info fs.FileInfo) *os.File {
	for _, s := range []*os.File{os.Stdout, os.Stderr} {
		if own, err := s.Stat(); err == nil && os.SameFile(info, own) {
			return s
		}
	}
	return nil
}
