// Package fileio reads and writes the files of commands safely. Only regular files are read. A file
// is written completely or not at all, and files of the user are replaced only on request. Folders
// of results have a mark that lists the files of miplc, and a lock that keeps other processes out.
//
// It does not use google/renameio, which renames over symbolic links, devices and pipes, does not
// sync the folder, and does not support Windows.
package fileio

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

// WriteOptions are the options of Create.
type WriteOptions struct {
	Force  bool     // replace an existing file
	Inputs []string // never replace these files, which the command reads; they need not exist
	// AllowStream permits writing to a device, a pipe or the standard output. Set it only for paths
	// that the user names, because a pipe with the name of one of miplc's files would block.
	AllowStream bool
}

// File is a file that is being written. It has a temporary name in its folder until Commit.
type File struct {
	path    string   // as given by the user
	target  string   // path with symbolic links followed
	stream  bool     // path is not a regular file: Commit copies the content to it
	temp    *os.File // the temporary file
	release func()   // unlocks it
	options WriteOptions
	folders []string // created by Create, innermost first
	closed  bool
	done    bool // committed or discarded
}

// Create starts a file. It follows symbolic links: the link stays, and the file that it points to
// is replaced. With WriteOptions.AllowStream and a path that is not a regular file (a device, a pipe, the
// standard output), Commit copies the content to it. Create makes missing folders. It returns
// an error if the path cannot be written, before the caller works for the content. The caller must
// call Discard, which does nothing after Commit.
func Create(path string, o WriteOptions) (*File, error) {
	f := &File{path: path, options: o}
	if err := f.open(); err != nil {
		f.Discard()
		return nil, f.explain(err)
	}
	return f, nil
}

func (f *File) open() (err error) {
	if err = f.checkTarget(); err != nil {
		return err
	}
	folder := filepath.Dir(f.target)
	pending.Lock() // a signal between the steps would leave the folder or the file
	defer pending.Unlock()
	if f.stream {
		folder = os.TempDir()
	} else if f.folders, err = MakeFolder(folder); err != nil {
		return err
	}
	// removes files of killed processes; errors do not matter
	_ = sweep(filepath.Join(folder, filepath.Base(f.target)), abandoned)
	if f.temp, f.release, err = createTemp(folder, filepath.Base(f.target)); err == nil {
		pending.files[f] = true
	}
	return err
}

// checkTarget follows the links of the path and returns the first reason not to write there.
func (f *File) checkTarget() error {
	if f.path == "" || os.IsPathSeparator(f.path[len(f.path)-1]) {
		return refusal(fmt.Sprintf("%q is not a file name", f.path))
	}
	info, err := os.Stat(f.path)
	if err == nil && (!info.Mode().IsRegular() && !info.IsDir() || standardStream(info) != nil) {
		if !f.options.AllowStream {
			return refusal(fmt.Sprintf("%s is a pipe, a device or the standard output, not a regular file: remove it, or "+
				"choose another folder", f.path))
		}
		f.target, f.stream = f.path, true
		if info.Mode().IsRegular() { // a redirection of the shell: it exists, but must not be replaced
			return f.options.notRead(f.path)
		}
		return nil
	}
	if f.target, info, err = follow(f.path); err != nil || info == nil {
		return err
	}
	return f.options.mayReplace(f.path, info)
}

// mayReplace returns the reason why the file at path must not be replaced, or nil.
func (o *WriteOptions) mayReplace(path string, info fs.FileInfo) error {
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

// notRead returns an error if path is among the inputs.
func (o *WriteOptions) notRead(path string) error {
	if input := firstSameFile(path, o.Inputs); input != "" {
		return refusal(fmt.Sprintf("%s is the same file as %s, which is read: choose another name", path, input))
	}
	return nil
}

// firstSameFile returns the first of files that is the same file as path, by any name or link, or "".
func firstSameFile(path string, files []string) string {
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

// Write writes to the temporary file.
func (f *File) Write(p []byte) (int, error) {
	n, err := f.temp.Write(p)
	return n, f.explain(err)
}

// Name returns the name of the temporary file. It may be read after Finish.
func (f *File) Name() string { return f.temp.Name() }

// IsStdout reports whether the file is the standard output of the process.
func (f *File) IsStdout() bool {
	info, err := os.Stat(f.path)
	return err == nil && f.stream && standardStream(info) == os.Stdout
}

// Finish syncs the content to the disk. Nothing can be written afterwards.
func (f *File) Finish() error {
	if f.closed {
		return nil
	}
	f.closed = true
	return f.explain(errors.Join(f.temp.Sync(), f.temp.Close()))
}

// Commit renames the file to its path, with the permissions of the file that it replaces.
func (f *File) Commit() error {
	if err := f.Finish(); err != nil {
		return err
	}
	if f.stream {
		defer f.Discard()
		return f.explain(copyInto(f.path, f.Name()))
	}
	if err := f.checkTarget(); err != nil { // a file may have appeared meanwhile
		return f.explain(err)
	}
	if info, err := os.Stat(f.target); err == nil {
		if err := os.Chmod(f.Name(), info.Mode().Perm()); err != nil {
			return f.explain(err)
		}
	}
	pending.Lock()
	defer pending.Unlock()
	if err := os.Rename(f.Name(), f.target); err != nil {
		return f.explain(err)
	}
	f.done = true
	f.release()
	delete(pending.files, f)
	return f.explain(syncFolder(filepath.Dir(f.target)))
}

// Fill calls write, which writes the content and may work for it, and commits the file; it discards it after an error.
func (f *File) Fill(write func(io.Writer) error) error {
	defer f.Discard()
	if err := write(f); err != nil {
		return err
	}
	return f.Commit()
}

// Discard removes the temporary file, and the folders that were created for it.
func (f *File) Discard() {
	pending.Lock()
	defer pending.Unlock()
	f.discard()
}

func (f *File) discard() {
	if f.done {
		return
	}
	f.done = true
	if f.temp != nil {
		f.temp.Close()
		os.Remove(f.temp.Name())
		f.release()
		delete(pending.files, f)
	}
	removeFolders(f.folders)
}

// pending are the files without a final name.
var pending = struct {
	sync.Mutex
	files map[*File]bool
}{files: map[*File]bool{}}

// DiscardAll removes all temporary files. It is for a process that ends early.
func DiscardAll() {
	pending.Lock() // never unlocked: no file may appear after this
	for f := range pending.files {
		f.discard()
	}
}

// Write writes a complete file.
func Write(path string, content []byte, o WriteOptions) error {
	f, err := Create(path, o)
	if err != nil {
		return err
	}
	return f.Fill(func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	})
}

// Replace writes a file that belongs to miplc and replaces an existing one.
func Replace(path string, content []byte) error {
	return Write(path, content, WriteOptions{Force: true})
}

// ReplaceJSON is like Replace, with a value as indented JSON.
func ReplaceJSON(path string, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return Replace(path, append(text, '\n'))
}

// CreateLog creates a file to which this process appends line by line while others read it. It has its
// final name from the start. If the file exists, the error wraps fs.ErrExist. The caller must sync
// what it writes.
func CreateLog(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o666)
	if err != nil {
		return nil, err
	}
	return f, syncFolder(filepath.Dir(path))
}

// AtPath reports whether an open file is still at the path by which it was opened. Another process may have
// removed it and created one of the same name.
func AtPath(f *os.File) bool {
	open, err := f.Stat()
	return err == nil && stillNamed(open, f.Name())
}

func stillNamed(open fs.FileInfo, path string) bool {
	named, err := os.Stat(path)
	return err == nil && os.SameFile(open, named)
}

// Append opens an existing file to append to it. It does not wait for a reader if path is a pipe.
func Append(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_WRONLY|os.O_APPEND|nonBlocking, 0)
}

// refusal is an error that already names the file.
type refusal string

func (r refusal) Error() string { return string(r) }

// explain replaces the temporary name in an error by the name that the user knows.
func (f *File) explain(err error) error {
	var known refusal
	var at *fs.PathError
	var moved *os.LinkError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &known):
		return known
	case errors.As(err, &at):
		err = at.Err
	case errors.As(err, &moved):
		err = moved.Err
	}
	return refusal(fmt.Sprintf("cannot write %s: %v", f.path, err))
}

// copyInto writes a whole file to a path that is not a regular file.
func copyInto(path, from string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	if info, err := os.Stat(path); err == nil {
		if own := standardStream(info); own != nil {
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

// standardStream returns the standard stream that is the same file, or nil. If the shell redirected a
// stream to a file, the file is written through the stream, because renaming over it would lose the
// other output.
func standardStream(info fs.FileInfo) *os.File {
	for _, s := range []*os.File{os.Stdout, os.Stderr} {
		if own, err := s.Stat(); err == nil && os.SameFile(info, own) {
			return s
		}
	}
	return nil
}
