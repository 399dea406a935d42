package ortlib

import (
	"bytes"
	"debug/elf"
	"debug/macho"
	"debug/pe"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/miplc/miplc/internal/fileio"
)

// entryPoint is the symbol through which a program reaches onnxruntime.
const entryPoint = "OrtGetApiBase"

// inspect checks a library file for the given system (GOOS and GOARCH names) by its headers and
// symbol tables, without loading it, so damaged or foreign files cannot crash the process. The
// version is "" if the file does not have one; such a library counts as usable.
func inspect(path, goos, goarch string) (version string, v Verdict, detail string) {
	f, info, err := fileio.Open(path)
	if err != nil {
		return "", NotLibrary, "cannot be read: " + err.Error()
	}
	defer f.Close()
	version, err = readVersion(f, info.Size(), goos, goarch)
	if err != nil {
		return "", NotLibrary, err.Error()
	}
	if version == "" {
		version = versionInName(realName(path))
	}
	if version == "" {
		return "", Usable, "the file does not contain its version"
	}
	if compareVersions(version, MinVersion) < 0 {
		return version, TooOld, fmt.Sprintf("version %s, miplc needs %s or later", version, MinVersion)
	}
	return version, Usable, ""
}

// readVersion reads the header for goos. The readers of package debug may panic on damaged files,
// so a panic counts as damage.
func readVersion(r io.ReaderAt, size int64, goos, goarch string) (version string, err error) {
	defer func() {
		if recover() != nil {
			version, err = "", errors.New("damaged: its headers make no sense")
		}
	}()
	head := make([]byte, 4)
	if n, _ := r.ReadAt(head, 0); n < len(head) {
		return "", errors.New("damaged: shorter than a header")
	}
	kind := fileKind(head)
	if kind == "" {
		return "", errors.New("not a shared library")
	}
	if want := namingOf(goos).kind; kind != want {
		return "", fmt.Errorf("is in %s format, %s needs %s", kind, goos, want)
	}
	switch kind {
	case "ELF":
		return elfVersion(r, size, goarch)
	case "Mach-O":
		return machoVersion(r, size, goarch)
	default:
		return "", checkPE(r, goarch)
	}
}

func fileKind(head []byte) string {
	switch {
	case string(head) == elf.ELFMAG:
		return "ELF"
	case string(head[:2]) == "MZ":
		return "PE"
	}
	little := binary.LittleEndian.Uint32(head)
	if little == macho.Magic32 || little == macho.Magic64 || binary.BigEndian.Uint32(head) == macho.MagicFat {
		return "Mach-O"
	}
	return ""
}

// elfMachines maps each architecture that onnxruntime supports to its ELF name.
var elfMachines = map[string]elf.Machine{
	"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64, "386": elf.EM_386, "arm": elf.EM_ARM,
	"riscv64": elf.EM_RISCV, "ppc64le": elf.EM_PPC64, "s390x": elf.EM_S390, "loong64": elf.EM_LOONGARCH,
}

// elfVersion returns the release from the symbol version VERS_<release>, which onnxruntime's linker
// script defines.
func elfVersion(r io.ReaderAt, size int64, goarch string) (string, error) {
	f, err := elf.NewFile(r)
	if err != nil {
		return "", errors.New("damaged: " + err.Error())
	}
	if f.Type != elf.ET_DYN {
		return "", errors.New("not a shared library")
	}
	if want, known := elfMachines[goarch]; known && f.Machine != want {
		return "", fmt.Errorf("built for %s, this is %s", f.Machine, goarch)
	}
	for _, seg := range f.Progs {
		end := seg.Off + seg.Filesz
		if end < seg.Off || end > uint64(size) {
			return "", errors.New("damaged: the file is cut off")
		}
	}
	symbols, err := f.DynamicSymbols()
	if err != nil && !errors.Is(err, elf.ErrNoSymbols) {
		return "", errors.New("damaged: " + err.Error())
	}
	exported := func(s elf.Symbol) bool { return s.Name == entryPoint && s.Section != elf.SHN_UNDEF }
	if !slices.ContainsFunc(symbols, exported) {
		return "", errors.New("a shared library, but not onnxruntime: it does not export " + entryPoint)
	}
	versions, err := f.DynamicVersions()
	if err != nil {
		return "", nil
	}
	for _, v := range versions {
		if version, ok := strings.CutPrefix(v.Name, "VERS_"); ok {
			return version, nil
		}
	}
	return "", nil
}

var machoCPUs = map[string]macho.Cpu{"amd64": macho.CpuAmd64, "arm64": macho.CpuArm64}

// loadIDDylib is the Mach-O load command LC_ID_DYLIB, which package macho does not decode.
const loadIDDylib = 0xd

// machoVersion returns the "current version" of the library's LC_ID_DYLIB command.
func machoVersion(r io.ReaderAt, size int64, goarch string) (string, error) {
	f, err := macho.NewFile(r)
	if err != nil {
		fat, fatErr := macho.NewFatFile(r)
		if fatErr != nil {
			return "", errors.New("damaged: " + err.Error())
		}
		for _, arch := range fat.Arches {
			if arch.Cpu == machoCPUs[goarch] {
				return thinMachoVersion(arch.File, int64(arch.Size), goarch)
			}
		}
		return "", fmt.Errorf("contains no code for %s", goarch)
	}
	return thinMachoVersion(f, size, goarch)
}

func thinMachoVersion(f *macho.File, size int64, goarch string) (string, error) {
	if f.Type != macho.TypeDylib {
		return "", errors.New("not a shared library")
	}
	if want, known := machoCPUs[goarch]; known && f.Cpu != want {
		return "", fmt.Errorf("built for %s, this is %s", f.Cpu, goarch)
	}
	version := ""
	for _, load := range f.Loads {
		if seg, ok := load.(*macho.Segment); ok && seg.Offset+seg.Filesz > uint64(size) {
			return "", errors.New("damaged: the file is cut off")
		}
		raw := load.Raw()
		if len(raw) >= 24 && f.ByteOrder.Uint32(raw) == loadIDDylib {
			v := f.ByteOrder.Uint32(raw[16:])
			version = fmt.Sprintf("%d.%d.%d", v>>16, v>>8&0xff, v&0xff)
		}
	}
	if f.Symtab == nil {
		return "", errors.New("a shared library, but not onnxruntime: it has no symbols")
	}
	for _, s := range f.Symtab.Syms {
		const typeMask, undefined = 0x0e, 0
		if s.Name == "_"+entryPoint && s.Type&typeMask != undefined {
			return version, nil
		}
	}
	return "", errors.New("a shared library, but not onnxruntime: it does not export " + entryPoint)
}

var peMachines = map[string]uint16{
	"amd64": pe.IMAGE_FILE_MACHINE_AMD64, "arm64": pe.IMAGE_FILE_MACHINE_ARM64,
}

func checkPE(r io.ReaderAt, goarch string) error {
	f, err := pe.NewFile(r)
	if err != nil {
		return errors.New("damaged: " + err.Error())
	}
	if f.Characteristics&pe.IMAGE_FILE_DLL == 0 {
		return errors.New("not a shared library")
	}
	if want, known := peMachines[goarch]; known && f.Machine != want {
		return fmt.Errorf("built for machine %#x, this is %s", f.Machine, goarch)
	}
	for _, s := range f.Sections {
		data, err := s.Data()
		if err != nil {
			return errors.New("damaged: the file is cut off")
		}
		if bytes.Contains(data, []byte(entryPoint)) {
			return nil
		}
	}
	return errors.New("a shared library, but not onnxruntime: it does not export " + entryPoint)
}

// realName follows links, because libonnxruntime.so usually links to a versioned name.
func realName(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}

var versionPattern = regexp.MustCompile(`\d+\.\d+(\.\d+)?`)

// versionInName returns the "1.27.0" of libonnxruntime.so.1.27.0, or "".
func versionInName(path string) string {
	return versionPattern.FindString(filepath.Base(path))
}

// compareVersions compares dotted numbers. A missing or invalid part counts as 0.
func compareVersions(a, b string) int {
	x, y := strings.Split(a, "."), strings.Split(b, ".")
	for i := range max(len(x), len(y)) {
		if d := versionPart(x, i) - versionPart(y, i); d != 0 {
			return d
		}
	}
	return 0
}

func versionPart(parts []string, i int) int {
	if i >= len(parts) {
		return 0
	}
	digits := strings.TrimRightFunc(parts[i], func(r rune) bool { return r < '0' || r > '9' })
	n, err := strconv.Atoi(digits)
	if err != nil {
		return 0
	}
	return n
}
