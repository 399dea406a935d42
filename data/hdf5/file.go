// Package hdf5 reads arrays of numbers from the HDF5 files that h5py, CLAM and TRIDENT
// write: groups, and contiguous and chunked datasets of integers and floats, compressed by
// deflate with or without shuffle, in the forms that HDF5 1.0 to 2.0 write by default.
//
// Files come from anywhere, so each length is checked before memory is allocated for it,
// and the metadata that an operation reads is bounded by twice the size of the file.
// Positions and versions are those of the "HDF5 File Format Specification", version 3.0.
package hdf5

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// File is an open HDF5 file. It is not safe for concurrent use.
type File struct {
	r    io.ReaderAt
	size uint64
	root uint64 // address of the object header of the root group
	base uint64 // offset of address 0
	// groups are the members of the groups that were looked at, by the address of the group.
	groups map[uint64]map[string]member
}

var (
	errDamaged = errors.New("the HDF5 file is damaged or cut short")
	le         = binary.LittleEndian
)

const (
	signature = "\x89HDF\r\n\x1a\n"
	undefined = ^uint64(0) // the address of something that does not exist
	maxDepth  = 32         // of trees and paths
)

// Open reads the superblock of a file of size bytes.
func Open(r io.ReaderAt, size int64) (*File, error) {
	f := &File{r: r, size: uint64(max(size, 0)), groups: map[uint64]map[string]member{}}
	// A user block of 512, 1024, ... bytes may precede the superblock.
	for at := uint64(0); at < f.size; at = max(512, 2*at) {
		b, err := f.newScan().read(at, min(96, f.size-at))
		if err != nil {
			return nil, err
		}
		if bytes.HasPrefix(b, []byte(signature)) {
			f.base = at
			return f, f.readSuperblock(b)
		}
	}
	return nil, errors.New("not an HDF5 file")
}

// readSuperblock finds the root group.
func (f *File) readSuperblock(b []byte) error {
	if len(b) < 48 {
		return errDamaged
	}
	sizes, root := b[13:15], 64 // of version 0
	switch b[8] {
	case 0:
	case 1:
		root = 68
	case 2, 3:
		sizes, root = b[9:11], 36
	default:
		return fmt.Errorf("version %d of the HDF5 superblock is not supported", b[8])
	}
	if sizes[0] != 8 || sizes[1] != 8 {
		return fmt.Errorf("HDF5 addresses of %d bytes are not supported; 8 are needed", sizes[0])
	}
	if len(b) < root+8 {
		return errDamaged
	}
	f.root = le.Uint64(b[root:])
	return nil
}

// scan bounds the metadata that one operation reads, so that a damaged file cannot send it
// in circles.
type scan struct {
	f    *File
	left uint64 // bytes
}

func (f *File) newScan() *scan { return &scan{f, 2*f.size + 1<<12} }

// read returns n bytes at an address.
func (s *scan) read(address, n uint64) ([]byte, error) {
	at := address + s.f.base
	if address == undefined || at < address || at > s.f.size || n > s.f.size-at || n > s.left {
		return nil, errDamaged
	}
	s.left -= n
	b := make([]byte, n)
	return b, s.f.readAt(b, at)
}

// readAt fills b. The end of the file is an error: its size was known when it was opened.
func (f *File) readAt(b []byte, at uint64) error {
	n, err := f.r.ReadAt(b, int64(at))
	if n == len(b) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		return errDamaged
	}
	return err
}

// Names returns the members of a group in alphabetical order. The path "" or "/" is the
// root group.
func (f *File) Names(path string) ([]string, error) {
	address, err := f.find(path)
	if err != nil {
		return nil, err
	}
	members, err := f.members(address)
	if err != nil {
		return nil, fmt.Errorf("%q: %w", path, err)
	}
	return slices.Sorted(maps.Keys(members)), nil
}

// ErrNotFound is the error of Dataset and Names for a path that the file does not have.
var ErrNotFound = errors.New("the HDF5 file has no")

// find returns the address of the object header at a path, and follows soft links.
func (f *File) find(path string) (uint64, error) {
	split := func(path string) []string {
		return slices.DeleteFunc(strings.Split(path, "/"), func(part string) bool { return part == "" || part == "." })
	}
	at, parts, links := f.root, split(path), 0
	link := "" // the last one
	var done []string
	for len(parts) > 0 {
		if len(parts)+len(done)+links > maxDepth {
			return 0, fmt.Errorf("the path %q has more than %d parts and soft links", path, maxDepth)
		}
		members, err := f.members(at)
		if err != nil {
			return 0, fmt.Errorf("%q: %w", strings.Join(done, "/"), err)
		}
		name := parts[0]
		parts = parts[1:]
		next, ok := members[name]
		switch here := strings.Join(append(done, name), "/"); {
		case !ok && link != "":
			return 0, fmt.Errorf("%s, but there is no %q", link, here)
		case !ok:
			return 0, fmt.Errorf("%w %q", ErrNotFound, here)
		case next.target == "":
			at, done = next.address, append(done, name)
			continue
		default:
			link = fmt.Sprintf("%q is a soft link to %q", here, next.target)
		}
		if links++; strings.HasPrefix(next.target, "/") {
			at, done = f.root, nil
		}
		parts = append(split(next.target), parts...)
	}
	return at, nil
}
