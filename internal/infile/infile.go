// Package infile opens the files that a user names for reading. All readers need
// regular ones: many read from several places, and a named pipe without a writer
// would let a command wait for ever.
package infile

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// Open opens a regular file. The error of anything else is an *fs.PathError that
// says what it is.
func Open(path string) (*os.File, fs.FileInfo, error) {
	info, err := os.Stat(path) // before it is opened: opening a device may act on it
	if err != nil {
		if missing := (*fs.PathError)(nil); errors.As(err, &missing) {
			missing.Op = "open" // what the user asked for
		}
		return nil, nil, err
	}
	if err := regular(path, info); err != nil {
		return nil, nil, err
	}
	// Another process may have put a pipe there meanwhile.
	f, err := os.OpenFile(path, os.O_RDONLY|NonBlocking, 0)
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

// regular returns an error that says what is at path if it is not a regular file.
func regular(path string, info fs.FileInfo) error {
	if kind := kindOf(info.Mode()); kind != "" {
		return &fs.PathError{Op: "open", Path: path, Err: errors.New("is " + kind + ", not a file")}
	}
	return nil
}

// CutShort words the end of the data inside something.
func CutShort(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the data end too early; the file is cut short")
	}
	return err
}

// Read reads a whole file, one that miplc wrote: nothing bounds its size.
func Read(path string) ([]byte, error) {
	f, _, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}

// Bytes reads a file of at most so many bytes; what it is to be is for messages.
func Bytes(path string, most int64, what string) ([]byte, error) {
	f, _, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(content)) > most {
		err = fmt.Errorf("%s has more than %d bytes, too many for %s", path, most, what)
	}
	return content, err
}

// SHA256 returns the hash of what a file holds, in hexadecimal.
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

// JSON reads a file that holds one value.
func JSON(path string, to any) error {
	text, err := Read(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, to); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// kindOf names what is no regular file.
func kindOf(mode fs.FileMode) string {
	switch {
	case mode.IsRegular():
		return ""
	case mode.IsDir():
		return "a directory"
	case mode&fs.ModeNamedPipe != 0:
		return "a pipe"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	}
	return "a device"
}
