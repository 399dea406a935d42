// Reading of regular files only, within limits, and files whose names look like the name of a missing one.

package fileio

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/miplc/miplc/internal/diag"
)

// Open opens a file that the user names for reading. It must be a regular file: many readers seek,
// and opening a named pipe without a writer would block. The error for anything else is an *fs.PathError with its kind.
func Open(path string) (*os.File, fs.FileInfo, error) {
	info, err := os.Stat(path) // before opening, because opening a device may have effects
	if err != nil {
		if missing := (*fs.PathError)(nil); errors.As(err, &missing) {
			missing.Op = "open" // the operation that the user requested
		}
		return nil, nil, err
	}
	if err := regular(path, info); err != nil {
		return nil, nil, err
	}
	// Another process may have replaced the file by a pipe meanwhile.
	f, err := os.OpenFile(path, os.O_RDONLY|nonBlocking, 0)
	if err != nil {
		return nil, nil, err
	}
	if info, err = f.Stat(); err == nil {
		err = regular(path, info)
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

// regular returns an error with the kind of the file unless it is a regular file.
func regular(path string, info fs.FileInfo) error {
	kind := "a device"
	switch mode := info.Mode(); {
	case mode.IsRegular():
		return nil
	case mode.IsDir():
		kind = "a directory"
	case mode&fs.ModeNamedPipe != 0:
		kind = "a pipe"
	case mode&fs.ModeSocket != 0:
		kind = "a socket"
	}
	return &fs.PathError{Op: "open", Path: path, Err: errors.New("is " + kind + ", not a file")}
}

// CutShort returns an error that explains data that end too early.
func CutShort(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the data end too early; the file is cut short")
	}
	return err
}

// Read reads a whole file. Use it for files that miplc wrote, because it does not limit the size.
func Read(path string) ([]byte, error) { return ReadAtMost(path, math.MaxInt64-1, "") }

// ReadAtMost reads a file of at most max bytes. what describes its contents in errors.
func ReadAtMost(path string, max int64, what string) ([]byte, error) {
	f, _, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, max+1))
	if err == nil && int64(len(content)) > max {
		err = fmt.Errorf("%s has more than %d bytes, too many for %s", path, max, what)
	}
	return content, err
}

// SHA256 returns the hash of a file in hexadecimal.
func SHA256(path string) (string, error) {
	f, _, err := Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", fmt.Errorf("cannot read %s: %w", path, err)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// ReadJSON decodes a file with one JSON value.
func ReadJSON(path string, to any) error {
	text, err := Read(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, to); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// Glob lists the paths below a folder that match a pattern of path.Match, with slashes. Only the characters of pattern
// have a special meaning: the folder may be called "out[1]". Errors of reading folders are ignored, as by
// filepath.Glob.
func Glob(dir, pattern string) []string {
	found, err := fs.Glob(os.DirFS(dir), pattern)
	if err != nil {
		panic("bug: " + pattern + " is not a pattern")
	}
	for i, name := range found {
		found[i] = filepath.Join(dir, filepath.FromSlash(name))
	}
	return found
}

// maxAlike is the maximum number of files of a folder that are compared with a missing one.
const maxAlike = 10_000

// WithAlike adds to the error that a file does not exist the path of one that does and looks alike: its name differs in
// case, spaces or Unicode form, or its path has slashes instead of backslashes.
func WithAlike(d diag.Diagnostic, path string) diag.Diagnostic {
	if found := strings.ReplaceAll(path, `\`, "/"); found != path {
		if _, err := os.Stat(found); err == nil {
			d.Suggestion = found
			return d.WithNote("paths have slashes on this system, not backslashes")
		}
	}
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		return d
	}
	defer folder.Close()
	names, _ := folder.Readdirnames(maxAlike)
	for _, name := range names {
		if difference := diag.Difference(filepath.Base(path), name); difference != "" {
			d.Suggestion = filepath.Join(filepath.Dir(path), name)
			return d.WithNote("the names differ %s only", difference)
		}
	}
	return d
}
