// Where the library is found, and in which order.

package onnxruntime

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/miplc/miplc/internal/libraries"
)

// machine is a fictitious linux/amd64 machine whose directories are all below a temporary
// directory. Its libraries are files without contents, because nothing loads them.
type machine struct {
	t    *testing.T
	root string
	env  map[string]string
}

func newMachine(t *testing.T) *machine {
	return &machine{t: t, root: filepath.Join(t.TempDir(), "root[1]"), env: map[string]string{}}
}

// anyLibrary accepts every library.
func anyLibrary(string) error { return nil }

func (m *machine) places() places {
	return places{
		goos: "linux", goarch: "amd64",
		getenv:      func(name string) string { return m.env[name] },
		executable:  m.path("bin/service"),
		cache:       m.path("cache"),
		systemDirs:  []string{m.path("usr/lib"), m.path("usr/local/lib")},
		pythonGlobs: []glob{{m.path(""), "python3*/site-packages/onnxruntime/capi/libonnxruntime.so*"}},
	}
}

func (m *machine) path(name string) string { return filepath.Join(m.root, filepath.FromSlash(name)) }

// put writes a library to a place.
func (m *machine) put(name string) string {
	m.t.Helper()
	return m.write(nil, name)
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
	path := m.put("work/libmine.so")
	t.Chdir(filepath.Dir(path))
	for _, env := range []bool{false, true} {
		option := "libmine.so"
		if env {
			m.env[EnvLibrary], option = option, ""
		}
		if lib, err := m.places().find(option, anyLibrary); err != nil || lib.Path != path {
			t.Errorf("%+v, %v; want %s", lib, err, path)
		}
	}
}

const cached = "cache/onnxruntime/1.27.0/linux-amd64/libonnxruntime.so.1.27.0"

// Without the first candidate, Find returns the next one.
func TestFindOrder(t *testing.T) {
	m := newMachine(t)
	option := m.put("option/mine.so")
	m.env[EnvLibrary] = m.put("env/first.so")
	m.env[EnvLibraryOwn] = m.put("env/second.so")
	places := []struct {
		origin FoundBy
		path   string
		remove func()
	}{
		{FromEnv, m.path("env/first.so"), func() { delete(m.env, EnvLibrary) }},
		{FromEnv, m.path("env/second.so"), func() { delete(m.env, EnvLibraryOwn) }},
		{FromCache, m.put(cached), nil},
		{FromExecutable, m.put("bin/libonnxruntime.so"), nil},
		{FromExecutable, m.put("lib/libonnxruntime.so.1"), nil},
		{FromExecutable, m.put("lib/python3.13/site-packages/onnxruntime/capi/libonnxruntime.so.1.32.0"), nil},
		{FromSystem, m.put("usr/lib/libonnxruntime.so.1.27.0"), nil},
		{FromSystem, m.put("usr/local/lib/libonnxruntime.so"), nil},
		{FromPython, m.put("python3.12/site-packages/onnxruntime/capi/libonnxruntime.so.1.27.0"), nil},
	}
	lib, err := m.places().find(option, anyLibrary)
	if want := (Library{Path: option, Origin: FromOption}); err != nil || lib != want {
		t.Fatalf("with a path: %+v, %v; want %+v", lib, err, want)
	}
	for _, place := range places {
		lib, err := m.places().find("", anyLibrary)
		if want := (Library{Path: place.path, Version: versionInName(place.path), Origin: place.origin}); err != nil ||
			lib != want {
			t.Fatalf("%+v, %v; want %+v", lib, err, want)
		}
		if place.remove != nil {
			place.remove()
		} else if err := os.Remove(place.path); err != nil {
			t.Fatal(err)
		}
	}
	_, err = m.places().find("", anyLibrary)
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
	if _, err := p.find("", anyLibrary); err == nil || !strings.Contains(err.Error(), "\n  cache: HOME is not set\n") {
		t.Errorf("no cache: %v", err)
	}
	if _, err := p.find("/nowhere.so", anyLibrary); err == nil || strings.Contains(err.Error(), "HOME") {
		t.Errorf("a named library: %v", err)
	}
}

// Unusable libraries in the default places are skipped. One that the user named is an error.
func TestFindPassesOverUnusable(t *testing.T) {
	m := newMachine(t)
	m.put("bin/libonnxruntime.so.1.9")
	m.put("usr/lib/libonnxruntime.so.1.20.1")
	good := m.put("usr/local/lib/libonnxruntime.so")
	if lib, err := m.places().find("", anyLibrary); err != nil || lib.Path != good {
		t.Fatalf("%+v, %v", lib, err)
	}

	bad := m.put("libonnxruntime.so.1.20.1")
	check := func(what, named, remedy string) {
		t.Helper()
		_, err := m.places().find(named, anyLibrary)
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

// A pinned library in the cache that does not load is not one to install again.
func TestInstalledLibraryThatDoesNotLoad(t *testing.T) {
	m := newMachine(t)
	p := m.places()
	p.pins = []libraries.Pin{{System: "linux/amd64", SHA256: fmt.Sprintf("%x", sha256.Sum256(nil))}}
	find := func() *NotFoundError {
		_, err := p.find("", func(string) error { return errors.New("does not fit") })
		var missing *NotFoundError
		if !errors.As(err, &missing) {
			t.Fatal(err)
		}
		return missing
	}
	if missing := find(); missing.Installed() || !strings.Contains(missing.Error(), "runtime install") {
		t.Errorf("an empty cache: %v", missing)
	}
	m.put("usr/lib/libonnxruntime.so")
	if missing := find(); missing.Installed() {
		t.Errorf("a library of the system: %v", missing)
	}
	m.put(strings.TrimPrefix(filepath.ToSlash(p.cachePath()), filepath.ToSlash(m.root)+"/"))
	if missing := find(); !missing.Installed() || strings.Contains(missing.Error(), "runtime install") ||
		!strings.Contains(missing.Error(), "does not fit") {
		t.Errorf("a library in the cache: %v", missing)
	}
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
			path := m.put(c.place)
			if err := os.Chmod(filepath.Dir(path), 0o777|os.ModeSticky); err != nil {
				t.Fatal(err)
			}
			_, err := m.places().find("", anyLibrary)
			if err == nil || !strings.Contains(err.Error(), path+" ("+c.origin+"): refused: every user can write to "+
				filepath.Dir(path)) {
				t.Errorf("%v", err)
			}
			if lib, err := m.places().find(path, anyLibrary); err != nil || lib.Path != path {
				t.Errorf("the explicit path is rejected: %v", err)
			}
		})
	}
}

// A link in a rejected directory does not hide the library that it points to.
func TestRefusedLinkHidesNothing(t *testing.T) {
	m := newMachine(t)
	good := m.put("usr/lib/libonnxruntime.so")
	m.write(nil, "bin/service")
	if err := os.Symlink(good, m.path("bin/libonnxruntime.so")); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(m.path("bin"), 0o777); err != nil {
		t.Fatal(err)
	}
	if lib, err := m.places().find("", anyLibrary); err != nil || lib.Path != good || lib.Origin != FromSystem {
		t.Errorf("%+v, %v; want %s", lib, err, good)
	}
}

// Empty and relative elements of LD_LIBRARY_PATH mean the working folder, which may be an
// unpacked download.
func TestFindIgnoresTheWorkingFolder(t *testing.T) {
	for _, variable := range []string{"", ":/nowhere", "/nowhere::", ".", "lib"} {
		t.Run(variable, func(t *testing.T) {
			m := newMachine(t)
			m.put("work/libonnxruntime.so")
			m.put("work/lib/libonnxruntime.so")
			t.Chdir(m.path("work"))
			p := m.places()
			p.systemDirs = systemDirs("linux", func(name string) string {
				return map[string]string{"LD_LIBRARY_PATH": variable}[name]
			})
			p.systemDirs = slices.DeleteFunc(p.systemDirs, filepath.IsAbs) // of the machine that runs the test
			lib, err := p.find("", anyLibrary)
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
	m.put("dir/libonnxruntime.so.1.9.0")
	want := m.put("dir/libonnxruntime.so.1.27.0")
	m.put("dir/libonnxruntime_providers_shared.so")
	m.put("dir/libonnxruntime.so")
	if lib, err := m.places().find(m.path("dir"), anyLibrary); err != nil || lib.Path != want {
		t.Errorf("%+v, %v; want %s", lib, err, want)
	}
	if err := os.Mkdir(m.path("empty"), 0o755); err != nil {
		t.Fatal(err)
	}
	_, err := m.places().find(m.path("empty"), anyLibrary)
	if err == nil || !strings.Contains(err.Error(), "directory without libonnxruntime.so") {
		t.Errorf("empty directory: %v", err)
	}
}

// A file that is reached by two names is inspected once.
func TestCandidatesFollowLinks(t *testing.T) {
	m := newMachine(t)
	target := m.put("usr/lib/libonnxruntime.so.1.27.0")
	if err := os.Symlink(target, m.path("usr/lib/libonnxruntime.so")); err != nil {
		t.Fatal(err)
	}
	n := 0
	for c := range m.places().candidates("") {
		if c.Exists {
			n++
		}
	}
	if n != 1 {
		t.Errorf("%d candidates exist, want 1", n)
	}
}

// A link has the version of the file that it points to.
func TestVersionOfLink(t *testing.T) {
	m := newMachine(t)
	link := m.path("usr/lib/libonnxruntime.so")
	if err := os.Symlink(m.put("usr/lib/1/libonnxruntime.so.1.20.1"), link); err != nil {
		t.Fatal(err)
	}
	if c := m.places().checkAt(link, FromOption); c.Verdict != VerdictTooOld || c.Version != "1.20.1" {
		t.Errorf("%+v", c)
	}
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
