package ortlib

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// machine is a fictitious linux/amd64 machine whose directories are all below a temporary
// directory. The stand-ins of testdata are the libraries in them.
type machine struct {
	t    *testing.T
	root string
	env  map[string]string
}

func newMachine(t *testing.T) *machine {
	return &machine{t: t, root: t.TempDir(), env: map[string]string{}}
}

func (m *machine) places() places {
	return places{
		goos: "linux", goarch: "amd64",
		getenv:      func(name string) string { return m.env[name] },
		executable:  m.path("bin/service"),
		cache:       m.path("cache"),
		systemDirs:  []string{m.path("usr/lib"), m.path("usr/local/lib")},
		pythonGlobs: []string{m.path("python3*/site-packages/onnxruntime/capi/libonnxruntime.so*")},
	}
}

func (m *machine) path(name string) string { return filepath.Join(m.root, filepath.FromSlash(name)) }

// put copies a stand-in (new.so, old.so, ...) to a place.
func (m *machine) put(standIn, name string) string {
	m.t.Helper()
	data, err := os.ReadFile("testdata/" + standIn)
	if err != nil {
		m.t.Fatal(err)
	}
	return m.write(data, name)
}

func (m *machine) write(data []byte, name string) string {
	m.t.Helper()
	path := m.path(name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		m.t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		m.t.Fatal(err)
	}
	return path
}

// A bare file name finds a library in the working folder. The dynamic linker would search other
// folders for it.
func TestFindByMereName(t *testing.T) {
	m := newMachine(t)
	path := m.put("new.so", "work/libmine.so")
	t.Chdir(filepath.Dir(path))
	for _, env := range []bool{false, true} {
		option := "libmine.so"
		if env {
			m.env[EnvLibrary], option = option, ""
		}
		if lib, err := m.places().find(option); err != nil || lib.Path != path {
			t.Errorf("%+v, %v; want %s", lib, err, path)
		}
	}
}

const cached = "cache/onnxruntime/1.27.0/linux-amd64/libonnxruntime.so.1.27.0"

// Without the first candidate, Find returns the next one.
func TestFindOrder(t *testing.T) {
	m := newMachine(t)
	option := m.put("new.so", "option/mine.so")
	m.env[EnvLibrary] = m.put("new.so", "env/first.so")
	m.env[EnvLibraryOwn] = m.put("new.so", "env/second.so")
	places := []struct {
		origin Origin
		path   string
		remove func()
	}{
		{FromEnv, m.path("env/first.so"), func() { delete(m.env, EnvLibrary) }},
		{FromEnv, m.path("env/second.so"), func() { delete(m.env, EnvLibraryOwn) }},
		{FromCache, m.put("new.so", cached), nil},
		{FromExecutable, m.put("new.so", "bin/libonnxruntime.so"), nil},
		{FromExecutable, m.put("new.so", "lib/libonnxruntime.so.1"), nil},
		{FromSystem, m.put("new.so", "usr/lib/libonnxruntime.so.1.27.0"), nil},
		{FromSystem, m.put("new.so", "usr/local/lib/libonnxruntime.so"), nil},
		{FromPython, m.put("new.so", "python3.12/site-packages/onnxruntime/capi/libonnxruntime.so.1.27.0"), nil},
	}
	lib, err := m.places().find(option)
	if want := (Library{Path: option, Version: "1.27.0", Origin: FromOption}); err != nil || lib != want {
		t.Fatalf("with a path: %+v, %v; want %+v", lib, err, want)
	}
	for _, place := range places {
		lib, err := m.places().find("")
		if want := (Library{Path: place.path, Version: "1.27.0", Origin: place.origin}); err != nil || lib != want {
			t.Fatalf("%+v, %v; want %+v", lib, err, want)
		}
		if place.remove != nil {
			place.remove()
		} else if err := os.Remove(place.path); err != nil {
			t.Fatal(err)
		}
	}
	_, err = m.places().find("")
	var missing *NotFoundError
	if !errors.As(err, &missing) || len(missing.Tried) != 5 {
		t.Fatalf("nothing left: %v", err)
	}
	for _, want := range []string{m.path(cached), "more places", "miplc runtime install", EnvLibrary} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error lacks %q:\n%v", want, err)
		}
	}
}

// Without a cache directory, as in a container without HOME, the error names the reason. An installed
// library would be found with it.
func TestFindWithoutCache(t *testing.T) {
	p := newMachine(t).places()
	p.cache, p.cacheErr = "", errors.New("HOME is not set")
	if _, err := p.find(""); err == nil || !strings.Contains(err.Error(), "\n  cache: HOME is not set\n") {
		t.Errorf("no cache: %v", err)
	}
	if _, err := p.find("/nowhere.so"); err == nil || strings.Contains(err.Error(), "HOME") {
		t.Errorf("a named library: %v", err)
	}
}

// Unusable libraries in the default places are skipped. One that the user named is an error.
func TestFindPassesOverUnusable(t *testing.T) {
	m := newMachine(t)
	m.put("old.so", "bin/libonnxruntime.so")
	m.put("old.so", "usr/lib/libonnxruntime.so.1.20.1")
	good := m.put("new.so", "usr/local/lib/libonnxruntime.so")
	if lib, err := m.places().find(""); err != nil || lib.Path != good {
		t.Fatalf("%+v, %v", lib, err)
	}

	bad := m.put("old.so", "old.so")
	check := func(what, named, remedy string) {
		t.Helper()
		_, err := m.places().find(named)
		if err == nil {
			t.Fatalf("%s: another library was used without an error", what)
		}
		for _, want := range []string{bad, "too old", "1.20.1", "1.24 or later", remedy} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: the error lacks %q:\n%v", what, want, err)
			}
		}
	}
	check("option", bad, "correct the path of the library")
	m.env[EnvLibrary] = bad
	check("environment", "", "correct or remove the environment variable "+EnvLibrary)
}

// A library that another user could have replaced is not loaded from any place, and the error
// says why.
func TestFindRefusesWhatOthersCanChange(t *testing.T) {
	const system = "usr/lib/libonnxruntime.so"
	for _, c := range []struct{ origin, place string }{
		{"executable", "bin/libonnxruntime.so"}, {"cache", cached}, {"system", system},
		{"python", "python3.12/site-packages/onnxruntime/capi/libonnxruntime.so.1.27.0"},
	} {
		t.Run(c.origin, func(t *testing.T) {
			m := newMachine(t)
			path := m.put("new.so", c.place)
			if err := os.Chmod(filepath.Dir(path), 0o777|os.ModeSticky); err != nil {
				t.Fatal(err)
			}
			_, err := m.places().find("")
			if err == nil || !strings.Contains(err.Error(), path+" ("+c.origin+"): refused: every user can write to "+filepath.Dir(path)) {
				t.Errorf("%v", err)
			}
			if lib, err := m.places().find(path); err != nil || lib.Path != path {
				t.Errorf("the explicit path is rejected: %v", err)
			}
		})
	}
}

// A link in a rejected directory does not hide the library that it points to.
func TestRefusedLinkHidesNothing(t *testing.T) {
	m := newMachine(t)
	good := m.put("new.so", "usr/lib/libonnxruntime.so")
	m.write(nil, "bin/service")
	if err := os.Symlink(good, m.path("bin/libonnxruntime.so")); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(m.path("bin"), 0o777); err != nil {
		t.Fatal(err)
	}
	if lib, err := m.places().find(""); err != nil || lib.Path != good || lib.Origin != FromSystem {
		t.Errorf("%+v, %v; want %s", lib, err, good)
	}
}

// Empty and relative elements of LD_LIBRARY_PATH mean the working folder, which may be an
// unpacked download.
func TestFindIgnoresTheWorkingFolder(t *testing.T) {
	for _, variable := range []string{"", ":/nowhere", "/nowhere::", ".", "lib"} {
		t.Run(variable, func(t *testing.T) {
			m := newMachine(t)
			m.put("new.so", "work/libonnxruntime.so")
			m.put("new.so", "work/lib/libonnxruntime.so")
			t.Chdir(m.path("work"))
			p := m.places()
			p.systemDirs = systemDirs("linux", func(name string) string { return map[string]string{"LD_LIBRARY_PATH": variable}[name] })
			p.systemDirs = slices.DeleteFunc(p.systemDirs, filepath.IsAbs) // of the machine that runs the test
			lib, err := p.find("")
			if err == nil {
				t.Errorf("took %s", lib.Path)
			} else if variable != "" && !strings.Contains(err.Error(), "refused: the path is relative") {
				t.Errorf("the error does not name the refused library: %v", err)
			}
		})
	}
}

func TestFindInDirectory(t *testing.T) {
	m := newMachine(t)
	m.put("old.so", "dir/libonnxruntime.so.1.9.0")
	want := m.put("new.so", "dir/libonnxruntime.so.1.27.0")
	m.put("other.so", "dir/libonnxruntime_providers_shared.so")
	m.put("new.so", "dir/libonnxruntime.so")
	if lib, err := m.places().find(m.path("dir")); err != nil || lib.Path != want {
		t.Errorf("%+v, %v; want %s", lib, err, want)
	}
	if err := os.Mkdir(m.path("empty"), 0o755); err != nil {
		t.Fatal(err)
	}
	_, err := m.places().find(m.path("empty"))
	if err == nil || !strings.Contains(err.Error(), "directory without libonnxruntime.so") {
		t.Errorf("empty directory: %v", err)
	}
}

// A file that is reached by two names is inspected once.
func TestCandidatesFollowLinks(t *testing.T) {
	m := newMachine(t)
	target := m.put("new.so", "usr/lib/libonnxruntime.so.1.27.0")
	if err := os.Symlink(target, m.path("usr/lib/libonnxruntime.so")); err != nil {
		t.Fatal(err)
	}
	n := 0
	m.places().each("", func(c Candidate) bool {
		if c.Exists {
			n++
		}
		return true
	})
	if n != 1 {
		t.Errorf("%d candidates exist, want 1", n)
	}
}

func TestInspect(t *testing.T) {
	m := newMachine(t)
	newSO, err := os.ReadFile("testdata/new.so")
	if err != nil {
		t.Fatal(err)
	}
	flip := func(at int, b byte) []byte {
		data := append([]byte(nil), newSO...)
		data[at] = b
		return data
	}
	dylib := machO(0x0100000c, 6, 1<<16|27<<8, true)
	for _, c := range []struct {
		name         string
		data         []byte
		goos, goarch string
		version      string
		verdict      Verdict
		detail       string
	}{
		{"good", newSO, "linux", "amd64", "1.27.0", Usable, ""},
		{"other architecture", newSO, "linux", "arm64", "", NotLibrary, "EM_X86_64"},
		{"other system", newSO, "darwin", "amd64", "", NotLibrary, "ELF format"},
		{"an executable", flip(16, 2), "linux", "amd64", "", NotLibrary, "not a shared library"},
		{"32 bit class", flip(4, 1), "linux", "amd64", "", NotLibrary, "damaged"},
		{"empty", nil, "linux", "amd64", "", NotLibrary, "shorter"},
		{"text", []byte("#!/bin/sh\n"), "linux", "amd64", "", NotLibrary, "not a shared library"},
		{"header alone", newSO[:64], "linux", "amd64", "", NotLibrary, "damaged"},
		{"half", newSO[:len(newSO)/2], "linux", "amd64", "", NotLibrary, "damaged"},
		{"one byte short", newSO[:len(newSO)-1], "linux", "amd64", "", NotLibrary, "damaged"},
		{"Mach-O", dylib, "darwin", "arm64", "1.27.0", Usable, ""},
		{"old Mach-O", machO(0x0100000c, 6, 1<<16|20<<8|1, true), "darwin", "arm64", "1.20.1", TooOld, "1.20.1"},
		{"Mach-O of Intel", dylib, "darwin", "amd64", "", NotLibrary, "this is amd64"},
		{"Mach-O on linux", dylib, "linux", "arm64", "", NotLibrary, "Mach-O format"},
		{"Mach-O that imports it", machO(0x0100000c, 6, 1<<16|27<<8, false), "darwin", "arm64", "", NotLibrary, "does not export"},
		{"Mach-O bundle", machO(0x0100000c, 8, 1<<16|27<<8, true), "darwin", "arm64", "", NotLibrary, "not a shared library"},
		{"cut Mach-O", dylib[:40], "darwin", "arm64", "", NotLibrary, "damaged"},
		{"no DLL", []byte("MZ and no more than that"), "windows", "amd64", "", NotLibrary, "damaged"},
	} {
		version, verdict, detail := inspect(m.write(c.data, "candidate"), c.goos, c.goarch)
		if version != c.version || verdict != c.verdict || !strings.Contains(detail, c.detail) {
			t.Errorf("%s: %q, %s, %q; want %q, %s, %q", c.name, version, verdict, detail, c.version, c.verdict, c.detail)
		}
	}
}

func TestInspectStandIns(t *testing.T) {
	m := newMachine(t)
	for _, c := range []struct {
		standIn, name string
		version       string
		verdict       Verdict
	}{
		{"old.so", "a", "1.20.1", TooOld},
		{"old.so", "libonnxruntime.so.1.27.0", "1.20.1", TooOld}, // the name may be wrong, the symbols are not
		{"unversioned.so", "libonnxruntime.so", "", Usable},
		{"unversioned.so", "libonnxruntime.so.1.19.2", "1.19.2", TooOld},
		{"unversioned.so", "libonnxruntime.so.1.30.0", "1.30.0", Usable},
		{"other.so", "libonnxruntime.so.1.27.0", "", NotLibrary},
	} {
		version, verdict, _ := inspect(m.put(c.standIn, c.name), "linux", "amd64")
		if version != c.version || verdict != c.verdict {
			t.Errorf("%s as %s: %q, %s; want %q, %s", c.standIn, c.name, version, verdict, c.version, c.verdict)
		}
	}
}

// Inspect returns a verdict for every truncated library and for every library with one byte set
// to 0xff.
func TestInspectSurvivesDamage(t *testing.T) {
	whole, err := os.ReadFile("testdata/new.so")
	if err != nil {
		t.Fatal(err)
	}
	for i := range whole {
		data := append([]byte(nil), whole...)
		data[i] = 0xff
		_, _ = readVersion(strings.NewReader(string(data)), int64(len(data)), "linux", "amd64")
		if _, err := readVersion(strings.NewReader(string(whole[:i])), int64(i), "linux", "amd64"); err == nil {
			t.Errorf("the first %d of %d bytes count as a library", i, len(whole))
		}
	}
}

func FuzzInspect(f *testing.F) {
	for _, name := range []string{"new.so", "unversioned.so", "other.so"} {
		data, err := os.ReadFile("testdata/" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add(machO(0x0100000c, 6, 1<<16|27<<8, true))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, goos := range []string{"linux", "darwin", "windows"} {
			_, _ = readVersion(strings.NewReader(string(data)), int64(len(data)), goos, "arm64")
		}
	})
}

// machO builds the smallest macOS dynamic library with an identity and a symbol table. The entry
// point is defined in it or only imported.
func machO(cpu, kind, version uint32, defined bool) []byte {
	le := binary.LittleEndian
	words := func(v ...uint32) (b []byte) {
		for _, w := range v {
			b = le.AppendUint32(b, w)
		}
		return b
	}
	const header, idSize, symtabSize = 32, 32, 24
	const symOff, symSize = header + idSize + symtabSize, 16
	name := "\x00_OrtGetApiBase\x00"
	symType := byte(0x01) // external, undefined
	if defined {
		symType = 0x0f // external, defined in a section
	}
	data := words(0xfeedfacf, cpu, 0, kind, 2, idSize+symtabSize, 0, 0)
	data = append(data, words(0xd, idSize, 24, 2, version, 1<<16)...)
	data = append(data, "a.dylib\x00"...)
	data = append(data, words(0x2, symtabSize, symOff, 1, symOff+symSize, uint32(len(name)))...)
	data = append(data, words(1)...)
	data = append(data, symType, 1, 0, 0)
	data = append(data, make([]byte, 8)...)
	return append(data, name...)
}

func TestCompareVersions(t *testing.T) {
	for _, c := range []struct {
		a, b string
		sign int
	}{
		{"1.27.0", "1.24", 1}, {"1.24", "1.24.0", 0}, {"1.9.1", "1.24", -1}, {"2.0", "1.24", 1},
		{"1.24.0-rc1", "1.24", 0}, {"", "1", -1}, {"nonsense", "0", 0},
	} {
		if got := compareVersions(c.a, c.b); got > 0 != (c.sign > 0) || got < 0 != (c.sign < 0) {
			t.Errorf("compareVersions(%q, %q) = %d, want sign %d", c.a, c.b, got, c.sign)
		}
	}
}

func TestLinkerConfiguration(t *testing.T) {
	m := newMachine(t)
	conf := m.write([]byte("# comment\ninclude conf.d/*.conf\n/opt/one  # trailing\n\n"), "ld.so.conf")
	m.write([]byte("/opt/two\n/opt/three\n"), "conf.d/a.conf")
	m.write([]byte("include ../ld.so.conf\n"), "conf.d/loop.conf")
	got := ldConfDirs(conf, 0)
	for _, want := range []string{"/opt/one", "/opt/two", "/opt/three"} {
		if !strings.Contains(strings.Join(got, " "), want) {
			t.Errorf("%v lacks %s", got, want)
		}
	}
	if got := ldConfDirs(m.path("missing"), 0); got != nil {
		t.Errorf("a missing file has %v", got)
	}
}
