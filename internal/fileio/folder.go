// Folders of results: their mark, their lock, and who may write.

package fileio

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/gofrs/flock"
)

// Names inside a folder.
const (
	MarkFile = ".miplc.json"
	lockFile = ".miplc.lock"
)

// FolderKind is the kind of a folder: the command that writes it.
type FolderKind string

// Kinds of folders.
const (
	RunFolder        FolderKind = "train"
	BuildFolder      FolderKind = "build"
	ExperimentFolder FolderKind = "experiment"
	ReportFolder     FolderKind = "report"
	HeatmapFolder    FolderKind = "predict"
	SearchFolder     FolderKind = "train --search"
)

// Mark lists the command and the files of a folder.
type Mark struct {
	By    FolderKind `json:"written_by"`
	Files []string   `json:"files"` // files that it writes, slash-separated, in the order in which Clear removes them
}

// CheckKind returns an error if another kind of command than the allowed ones wrote the folder. m may be
// nil.
func (m *Mark) CheckKind(dir string, allowed ...FolderKind) error {
	if m == nil || slices.Contains(allowed, m.By) {
		return nil
	}
	return fmt.Errorf("%s was written by miplc %s: choose another folder", dir, m.By)
}

// ReadMark reads the mark of a folder, or returns nil if it has none.
func ReadMark(dir string) (*Mark, error) {
	name := filepath.Join(dir, MarkFile)
	text, err := Read(name)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	m := &Mark{}
	if err = json.Unmarshal(text, m); err == nil && slices.ContainsFunc(m.Files, func(f string) bool {
		return !filepath.IsLocal(f)
	}) {
		err = errors.New("it lists files outside the folder")
	}
	if err != nil {
		return nil, fmt.Errorf("%s is damaged (%w): it says which files of the folder miplc wrote; choose another folder",
			name, err)
	}
	return m, nil
}

// Folder is a folder that only this process writes to. Lock it with LockFolder, check its Mark, call
// Claim, which keeps files of earlier commands, or Restart, which deletes them, write files, and Close
// it. ClaimFolder combines the first steps.
type Folder struct {
	Dir     string
	Mark    *Mark // nil: miplc did not write the folder
	lock    *flock.Flock
	created []string // folders that LockFolder created
	hadMark bool     // LockFolder found a mark
}

// lockedFolders are the folders that the process has locked.
var lockedFolders = struct {
	sync.Mutex
	folders map[*Folder]bool
}{folders: map[*Folder]bool{}}

// AbandonAll clears and closes the folders of a process that ends early. Folders that had a mark
// before keep their files.
func AbandonAll() {
	lockedFolders.Lock() // never unlocked: no folder may be claimed after this
	for f := range lockedFolders.folders {
		if !f.hadMark {
			_ = f.Clear() // the error could only be ignored
		}
		f.release()
	}
}

// LockFolder creates a folder if it is missing and locks it until Close, which the caller must call.
func LockFolder(dir string) (*Folder, error) {
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return nil, fmt.Errorf("%s is a file: name a folder", dir)
	}
	lockedFolders.Lock()
	defer lockedFolders.Unlock()
	created, err := MakeFolder(dir)
	if err != nil {
		return nil, err
	}
	f := &Folder{Dir: dir, created: created}
	if f.lock, err = acquire(dir); err == nil {
		f.Mark, err = ReadMark(dir)
		f.hadMark = f.Mark != nil
	}
	if err != nil {
		f.release()
		return nil, err
	}
	lockedFolders.folders[f] = true
	return f, nil
}

// ClaimFolder locks a folder and calls claim, which checks its mark and calls Claim or Restart. If claim
// returns an error, ClaimFolder closes the folder; otherwise the caller must close it.
func ClaimFolder(dir string, claim func(*Folder) error) (*Folder, error) {
	f, err := LockFolder(dir)
	if err != nil {
		return nil, err
	}
	if err := claim(f); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// BusyError reports a folder that another miplc process has locked.
type BusyError struct{ Dir string }

func (e *BusyError) Error() string {
	return fmt.Sprintf("another process of miplc is at work in %s: wait for its end, or choose another folder", e.Dir)
}

// acquire acquires the lock of a folder. Close removes the lock file, so a lock may have been acquired
// on a file that no longer has its name.
func acquire(dir string) (*flock.Flock, error) {
	name := filepath.Join(dir, lockFile)
	for {
		l, err := NewLock(name)
		if err != nil {
			return nil, err
		}
		switch free, err := l.TryLock(); {
		case errors.Is(err, fs.ErrNotExist):
			return nil, fmt.Errorf("%s was removed by another process", dir)
		case errors.Is(err, fs.ErrPermission):
			return nil, fmt.Errorf("nothing can be written in %s: %w", dir, err)
		case err != nil:
			return nil, fmt.Errorf("%s cannot be locked: %w", dir, err)
		case !free:
			return nil, &BusyError{dir}
		}
		locked, err := l.Stat()
		if err != nil {
			return nil, errors.Join(err, l.Close())
		}
		if stillNamed(locked, name) {
			return l, nil
		}
		l.Close()
	}
}

// Claim marks the folder as containing the files of a kind, which need not exist yet. It removes
// files that the mark listed before and files does not, and temporary files of killed processes. It
// changes nothing and returns an error if one of the files exists but no mark lists it, because it
// belongs to the user, or if one is among inputs, the files that the command reads.
func (f *Folder) Claim(kind FolderKind, files, inputs []string) error {
	return f.claim(kind, files, inputs, files)
}

// Restart is like Claim but removes all files that the mark listed before.
func (f *Folder) Restart(kind FolderKind, files, inputs []string) error {
	return f.claim(kind, files, inputs, nil)
}

// CheckFiles returns the errors with which Claim and Restart would change nothing.
func (f *Folder) CheckFiles(files, inputs []string) error {
	return errors.Join(f.checkNotForeign(files), f.checkNotInput(files, inputs))
}

// claim removes the files that the mark listed before, except keep.
func (f *Folder) claim(kind FolderKind, files, inputs, keep []string) error {
	if err := f.CheckFiles(files, inputs); err != nil {
		return err
	}
	if f.Mark != nil {
		if err := f.remove(slices.DeleteFunc(slices.Clone(f.Mark.Files), func(name string) bool {
			return slices.Contains(keep, name)
		})); err != nil {
			return err
		}
	}
	for _, name := range append([]string{MarkFile}, files...) {
		if err := Sweep(filepath.Join(f.Dir, name)); err != nil {
			return err
		}
	}
	m := &Mark{By: kind, Files: files}
	if err := ReplaceJSON(filepath.Join(f.Dir, MarkFile), m); err != nil {
		return err
	}
	f.Mark = m
	return nil
}

// checkNotForeign returns an error for files that exist but are not listed in the mark.
func (f *Folder) checkNotForeign(files []string) error {
	var list []string
	for _, name := range files {
		if f.Mark != nil && slices.Contains(f.Mark.Files, name) {
			continue
		}
		switch _, err := os.Lstat(filepath.Join(f.Dir, name)); {
		case err == nil:
			list = append(list, name)
		case !errors.Is(err, fs.ErrNotExist):
			return err
		}
	}
	if len(list) == 0 {
		return nil
	}
	return fmt.Errorf("%s has files of these names that no mark of miplc lists: %s; move them away, or choose another "+
		"folder", f.Dir, strings.Join(list, ", "))
}

// checkNotInput returns an error if a new or listed file is among the inputs.
func (f *Folder) checkNotInput(files, inputs []string) error {
	if f.Mark != nil {
		files = append(slices.Clip(files), f.Mark.Files...)
	}
	for _, name := range files {
		own := filepath.Join(f.Dir, name)
		if input := firstSameFile(own, inputs); input != "" {
			return fmt.Errorf("%s is read and would be replaced: choose another folder", own)
		}
	}
	return nil
}

// Clear removes the files that the mark lists, the folders that become empty, and the mark.
func (f *Folder) Clear() error {
	if f.Mark == nil {
		return nil
	}
	err := f.remove(append(slices.Clone(f.Mark.Files), MarkFile))
	if err == nil {
		f.Mark = nil
	}
	return err
}

// ClearUnless removes the files of a failed command like Clear, unless one of the named files exists,
// because it is worth keeping.
func (f *Folder) ClearUnless(names ...string) {
	for _, name := range names {
		if _, err := os.Stat(filepath.Join(f.Dir, name)); err == nil {
			return
		}
	}
	_ = f.Clear()
}

// remove removes files, and folders that become empty. It does not follow links that lead out of the folder.
func (f *Folder) remove(files []string) error {
	inside, err := os.OpenRoot(f.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer inside.Close()
	var folders []string
	for _, name := range files {
		if err := inside.Remove(filepath.FromSlash(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s: %w", f.Dir, err)
		}
		for at := path.Dir(name); at != "."; at = path.Dir(at) {
			folders = append(folders, filepath.Join(f.Dir, at))
		}
	}
	removeFolders(folders)
	return nil
}

// Close unlocks the folder. It removes the folder if LockFolder created it and it is empty.
func (f *Folder) Close() {
	lockedFolders.Lock()
	defer lockedFolders.Unlock()
	delete(lockedFolders.folders, f)
	f.release()
}

func (f *Folder) release() {
	if f.lock != nil {
		name := filepath.Join(f.Dir, lockFile)
		// not the lock of another process in a new folder
		if locked, err := f.lock.Stat(); err == nil && stillNamed(locked, name) {
			os.Remove(name) // before unlocking
		}
		f.lock.Close()
	}
	removeFolders(f.created)
}

// NewLock returns a lock that is not yet held. Locking it creates the file path. If path is not a regular
// file, the error is an *fs.PathError: opening a pipe would block, and a link could point to another
// user's file.
func NewLock(path string) (*flock.Flock, error) {
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "lock", Path: path, Err: errors.New("it is not a regular file: remove it")}
	}
	return flock.New(path, flock.SetPermissions(0o666), flock.SetFlag(os.O_CREATE|os.O_RDONLY|nonBlocking)), nil
}
