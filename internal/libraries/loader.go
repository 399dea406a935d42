// Protection against two weaknesses of the dynamic loader: it reads past the end of a truncated library, which ends the
// process, and its messages need an explanation.

package libraries

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"

	"github.com/miplc/miplc/internal/fileio"
	"github.com/miplc/miplc/internal/resources"
)

// CheckComplete returns an error if a library in ELF format ends before its segments do. Loading it would end
// the process with SIGBUS. Other faults are left to the loader, see LoadError.
func CheckComplete(path string) error {
	f, info, err := fileio.Open(path) // which refuses a pipe without waiting for a writer
	if err != nil {
		return err
	}
	defer f.Close()
	const header, magic, is64, little = 64, "\x7fELF", 2, 1
	var h [header]byte
	if _, err := io.ReadFull(f, h[:]); err != nil || string(h[:4]) != magic || h[4] != is64 || h[5] != little {
		return nil // no ELF file of the supported processors
	}
	number := binary.LittleEndian
	table, size, count := number.Uint64(h[32:]), number.Uint16(h[54:]), number.Uint16(h[56:])
	for i := range int64(count) {
		var segment [40]byte
		_, err := f.ReadAt(segment[:], int64(table)+i*int64(size))
		offset, length := number.Uint64(segment[8:]), number.Uint64(segment[32:])
		if end := offset + length; err != nil || end < offset || end > uint64(info.Size()) {
			return errors.New("is a damaged shared library: it is cut off")
		}
	}
	return nil
}

// LoadError explains the loader's message about the library at path, for the end of a sentence about
// that file.
func LoadError(path, message string) error {
	space, limited := resources.AddressSpace()
	return loadError(path, message, space, limited)
}

// loadError is LoadError for a process whose address space may be limited.
func loadError(path, message string, space float64, limited bool) error {
	says := func(parts ...string) bool {
		for _, part := range parts {
			if strings.Contains(message, part) {
				return true
			}
		}
		return false
	}
	const missing = "cannot open shared object file"
	name, _, _ := strings.Cut(message, ": ")
	switch {
	case says(missing) && name != path:
		return fmt.Errorf("needs the library %s, which was not found", name)
	case says(missing, "wrong ELF class", "data encoding", "incompatible architecture"):
		// glibc reports a library for another processor as a missing file.
		return fmt.Errorf("is built for another processor than %s, that of this machine", runtime.GOARCH)
	case says("invalid ELF header", "file too short", "cannot read file data", "not a mach-o file",
		"not a valid Win32 application", "Exec format error"):
		return fmt.Errorf("is not a shared library for %s, or is damaged", runtime.GOOS)
	}
	if limited && says("failed to map", "annot allocate memory", "bad_alloc") {
		return fmt.Errorf("does not fit into the address space of the process: raise its limit of %s, or remove it with "+
			"`ulimit -v unlimited`", resources.Bytes(space))
	}
	return fmt.Errorf("does not load: %s", message)
}
