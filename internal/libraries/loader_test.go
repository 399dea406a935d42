// Cut libraries, and errors of the loader in words.

package libraries

import (
	"debug/elf"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Every file that ends within a segment of a library is rejected. The sections behind the segments are
// not loaded.
func TestCheckComplete(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	f, err := elf.Open(program)
	if err != nil {
		t.Skip("no ELF file: ", err)
	}
	defer f.Close()
	end := uint64(0)
	for _, segment := range f.Progs {
		end = max(end, segment.Off+segment.Filesz)
	}
	path := filepath.Join(t.TempDir(), "library.so")
	sizes := map[uint64]bool{ // whether the file is cut off
		uint64(len(content)): false, end: false, end - 1: true, end / 2: true, 100: true, 64: true,
		63: false, 0: false, // too short for an ELF header: the loader says so
	}
	for size, cut := range sizes {
		if err := os.WriteFile(path, content[:size], 0o644); err != nil {
			t.Fatal(err)
		}
		if err := CheckComplete(path); (err != nil) != cut {
			t.Errorf("%d of %d bytes: %v", size, len(content), err)
		}
	}
}

func TestLoadError(t *testing.T) {
	for message, want := range map[string]string{
		"/a.so: invalid ELF header":                                             "is not a shared library",
		"/a.so: file too short":                                                 "is not a shared library",
		"/a.so: wrong ELF class: ELFCLASS32":                                    "another processor",
		"/a.so: cannot open shared object file: No such file or directory":      "another processor",
		"libb.so.1: cannot open shared object file: No such file or directory":  "needs the library libb.so.1, which",
		"/a.so: undefined symbol: f":                                            "does not load: /a.so: undefined symbol: f",
		"dlopen(/a.so, 0x1): tried: '/a.so' (incompatible architecture (have x": "another processor",
		"/a.so: failed to map segment from shared object":                       "does not load: /a.so: failed to map",
	} {
		if err := loadError("/a.so", message, 0, false); !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", message, err)
		}
	}
	for _, message := range []string{"/a.so: failed to map segment from shared object",
		"/a.so: cannot create shared object descriptor: Cannot allocate memory"} {
		if err := loadError("/a.so", message, 1.5*(1<<30), true); !strings.Contains(err.Error(), "limit of 1.5 GiB") {
			t.Errorf("%s: %v", message, err)
		}
	}
}
