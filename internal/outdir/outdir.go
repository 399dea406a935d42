// Package outdir keeps folders of results. A mark in the folder says what wrote
// it and which files, so that a user's files are never taken for results, and a
// lock keeps a second process out.
package outdir

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

	"github.com/gofrs/flock"

	"github.com/miplc/miplc/internal/infile"
	"github.com/miplc/miplc/internal/outfile"
)

// Names inside a folder.
const (
	MarkFile = ".miplc.json"
	lockFile = ".miplc.lock"
)

// Kind is what a folder holds: the command that writes such ones.
type Kind string

// Kinds of folders.
const (
	Run        Kind = "train"
	Build      Kind = "build"
	Experiment Kind = "experiment"
	Report     Kind = "report"
)

// Mark says what wrote a folder.
type Mark struct {
	By    Kind     `json:"written_by"`
	Files []string `json:"files"` // that it writes, slash-separated, in the order in which Clear removes them
}

// Other reports a folder that another command than these writes. It may be called
// on nil.
func (m *Mark) Other(dir string, kinds ...Kind) error {
	if m == nil || slices.Contains(kinds, m.By) {
		return nil
	}
	return fmt.Errorf("%s was written by miplc %s: choose another folder", dir, m.By)
}

// ReadMark reads the mark of a folder; nil where there is none.
func ReadMark(dir string) (*Mark, error) {
	name := filepath.Join(dir, MarkFile)
	text, err := infile.Read(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	m := &Mark{}
	if err = json.Unmarshal(text, m); err == nil && slices.ContainsFunc(m.Files, func(f string) bool { return !filepath.IsLocal(f) }) {
		err = errors.New("it lists files outside the folder")
	}
	if err != nil {
		return nil, fmt.Errorf("%s is damaged (%w): it says which files of the folder miplc wrote; choose another folder", name, err)
	}
	return m, nil
}

// Folder is a folder that this process alone writes to.
type Folder struct {
	Dir  string
	Mark *Mark // nil: the folder is not one of miplc's
	lock *flock.Flock
	made []string // folders that Lock made
	bare bool     // Lock found no mark
}

// held are the folders of the process that are not closed.
var held = struct {
	sync.Mutex
	folders map[*Folder]bool
}{folders: map[*Folder]bool{}}

// AbandonAll clears and closes the folders of a process about to end out of turn.
// Those that had a mark before keep what they hold.
func AbandonAll() {
	held.Lock() // for good: nothing is to be claimed after this
	for f := range held.folders {
		if f.bare {
			_ = f.Clear() // there is nobody left to tell
		}
		f.release()
	}
}

// Lock makes a folder if it is missing and keeps other processes out of it until
// Close, which answers every call.
func Lock(dir string) (*Folder, error) {
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return nil, fmt.Errorf("%s is a file: name a folder", dir)
	}
	held.Lock()
	defer held.Unlock()
	made, err := outfile.MakeFolder(dir)
	if err != nil {
		return nil, err
	}
	f := &Folder{Dir: dir, made: made}
	if f.lock, err = lock(dir); err == nil {
		f.Mark, err = ReadMark(dir)
		f.bare = f.Mark == nil
	}
	if err != nil {
		f.release()
		return nil, err
	}
	held.folders[f] = true
	return f, nil
}

// BusyError reports a folder that another process of miplc has locked.
type BusyError struct{ Dir string }

func (e *BusyError) Error() string {
	return fmt.Sprintf("another process of miplc is at work in %s: wait for its end, or choose another folder", e.Dir)
}

// lock takes the lock of a folder. Who closes a folder removes the file, so the
// one that was locked may have lost its name meanwhile.
func lock(dir string) (*flock.Flock, error) {
	name := filepath.Join(dir, lockFile)
	for {
		l, err := outfile.Lock(name)
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
		if named, err := os.Stat(name); err == nil && os.SameFile(locked, named) {
			return l, nil
		}
		l.Close()
	}
}

// Take marks the folder as holding the files of a kind, which need not exist yet.
// What the mark listed before and files does not goes; so do files aside of killed
// processes. Nothing is touched where one of the files is there and no mark lists
// it, for then it is a user's, or where one is among inputs, which are read.
func (f *Folder) Take(kind Kind, files, inputs []string) error {
	return f.take(kind, files, inputs, func(name string) bool { return !slices.Contains(files, name) })
}

// Restart is Take that removes all that the mark listed before.
func (f *Folder) Restart(kind Kind, files, inputs []string) error {
	return f.take(kind, files, inputs, func(string) bool { return true })
}

// May says why Take and Restart would touch nothing.
func (f *Folder) May(files, inputs []string) error {
	return errors.Join(f.foreign(files), f.read(files, inputs))
}

func (f *Folder) take(kind Kind, files, inputs []string, stale func(name string) bool) error {
	if err := f.May(files, inputs); err != nil {
		return err
	}
	if f.Mark != nil {
		if err := f.remove(slices.DeleteFunc(slices.Clone(f.Mark.Files), func(name string) bool { return !stale(name) })); err != nil {
			return err
		}
	}
	for _, name := range append([]string{MarkFile}, files...) {
		if err := outfile.Sweep(filepath.Join(f.Dir, name)); err != nil {
			return err
		}
	}
	m := &Mark{By: kind, Files: files}
	if err := outfile.ReplaceJSON(filepath.Join(f.Dir, MarkFile), m); err != nil {
		return err
	}
	f.Mark = m
	return nil
}

// foreign reports files that are there though the mark does not list them.
func (f *Folder) foreign(files []string) error {
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
	return fmt.Errorf("%s has files of these names that no mark of miplc lists: %s; move them away, or choose another folder", f.Dir, strings.Join(list, ", "))
}

// read reports files, new or listed, that are among the inputs.
func (f *Folder) read(files, inputs []string) error {
	if f.Mark != nil {
		files = append(slices.Clip(files), f.Mark.Files...)
	}
	for _, name := range files {
		own := filepath.Join(f.Dir, name)
		if input := outfile.Among(own, inputs); input != "" {
			return fmt.Errorf("%s is read and would be replaced: choose another folder", own)
		}
	}
	return nil
}

// Clear removes the files that the mark lists, the folders that they leave empty
// and the mark. All other files stay.
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

func (f *Folder) remove(files []string) error {
	var folders []string
	for _, name := range files {
		if err := os.Remove(filepath.Join(f.Dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for at := path.Dir(name); at != "."; at = path.Dir(at) {
			folders = append(folders, filepath.Join(f.Dir, at))
		}
	}
	outfile.RemoveFolders(folders)
	return nil
}

// Close lets other processes in. A folder that Lock made and that is empty goes.
func (f *Folder) Close() {
	held.Lock()
	defer held.Unlock()
	delete(held.folders, f)
	f.release()
}

func (f *Folder) release() {
	if f.lock != nil {
		os.Remove(filepath.Join(f.Dir, lockFile)) // while it is held
		f.lock.Close()
	}
	outfile.RemoveFolders(f.made)
}
