// The places where the library is looked for.

package onnxruntime

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/miplc/miplc/internal/native"
)

// places describes the machine for the search; tests replace it.
type places struct {
	goos, goarch string
	getenv       func(string) string
	executable   string   // path of the running binary, "" if unknown
	cache        string   // root of miplc's cache, "" if there is none
	cacheErr     error    // why cache is ""
	systemDirs   []string // directories of shared libraries
	pythonGlobs  []string // patterns of the library inside Python installations
	pins         []native.Pin
}

// here returns the description of the running process.
func here() places {
	p := places{goos: runtime.GOOS, goarch: runtime.GOARCH, getenv: os.Getenv, pins: pins}
	if exe, err := os.Executable(); err == nil {
		p.executable = exe
	}
	p.cache, p.cacheErr = native.CacheDir()
	p.systemDirs = systemDirs(p.goos, p.getenv)
	p.pythonGlobs = pythonGlobs(p.goos, p.getenv)
	return p
}

// group is one rule of the search order. Its paths are computed only if the search reaches it.
type group struct {
	origin Origin
	paths  func() []string
}

func (p places) groups(explicit string) []group {
	one := func(path string) func() []string {
		return func() []string { return []string{p.inDir(path)} }
	}
	if explicit != "" {
		return []group{{FromOption, one(explicit)}}
	}
	var gs []group
	for _, name := range []string{EnvLibrary, EnvLibraryOwn} {
		if v := p.getenv(name); v != "" {
			gs = append(gs, group{FromEnv, one(v)})
		}
	}
	if p.cache != "" {
		gs = append(gs, group{FromCache, func() (paths []string) {
			for _, s := range p.slots() {
				paths = append(paths, s.Path)
			}
			return paths
		}})
	}
	if p.executable != "" {
		gs = append(gs, group{FromExecutable, func() []string {
			dir := filepath.Dir(p.executable)
			paths := append(p.librariesIn(dir), p.librariesIn(filepath.Join(dir, "..", "lib"))...)
			// pip installs the program of the Python package miplc and onnxruntime into one environment.
			for _, pattern := range siteGlobs(p.goos, filepath.Dir(dir)) {
				paths = append(paths, newestFirst(pattern)...)
			}
			return paths
		}})
	}
	return append(gs,
		group{FromSystem, func() []string {
			var paths []string
			for _, dir := range p.systemDirs {
				paths = append(paths, p.librariesIn(dir)...)
			}
			return paths
		}},
		group{FromPython, func() []string {
			var paths []string
			for _, pattern := range p.pythonGlobs {
				paths = append(paths, newestFirst(pattern)...)
			}
			return paths
		}})
}

// cachePath returns the path to which Install writes the library of this system.
func (p places) cachePath() string {
	return filepath.Join(p.cache, "onnxruntime", Version, p.goos+"-"+p.goarch, namingOf(p.goos).installed)
}

// inDir returns the library in a directory if path is a directory, else path.
func (p places) inDir(path string) string {
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		return path
	}
	if found := newestFirst(filepath.Join(path, namingOf(p.goos).glob)); len(found) > 0 {
		return found[0]
	}
	return path
}

// librariesIn lists the onnxruntime libraries in a directory, or the path of the expected one if
// there are none.
func (p places) librariesIn(dir string) []string {
	if found := newestFirst(filepath.Join(dir, namingOf(p.goos).glob)); len(found) > 0 {
		return found
	}
	return []string{filepath.Join(dir, namingOf(p.goos).plain)}
}

// newestFirst expands a pattern and sorts libonnxruntime.so.1.27.0 before libonnxruntime.so.1.9.0
// and before names without a version.
func newestFirst(pattern string) []string {
	found, err := filepath.Glob(pattern)
	if err != nil {
		return nil
	}
	slices.SortFunc(found, func(a, b string) int {
		return cmp.Or(compareVersions(versionInName(b), versionInName(a)), strings.Compare(a, b))
	})
	return found
}

// naming has the file names of the library on a system.
type naming struct {
	plain     string
	glob      string // the names that distributions use, without those of add-ons (libonnxruntime_providers_shared.so)
	installed string // contains the version, so that a listing of the cache shows it
}

func namingOf(goos string) naming {
	switch goos {
	case "windows":
		return naming{"onnxruntime.dll", "onnxruntime.dll", "onnxruntime.dll"}
	case "darwin", "ios":
		return naming{"libonnxruntime.dylib", "libonnxruntime*.dylib", "libonnxruntime." + Version + ".dylib"}
	}
	return naming{"libonnxruntime.so", "libonnxruntime.so*", "libonnxruntime.so." + Version}
}

func systemDirs(goos string, getenv func(string) string) []string {
	switch goos {
	case "windows":
		return filepath.SplitList(getenv("PATH"))
	case "darwin":
		dirs := filepath.SplitList(getenv("DYLD_LIBRARY_PATH"))
		return append(dirs, "/opt/homebrew/lib", "/opt/homebrew/opt/onnxruntime/lib",
			"/usr/local/lib", "/usr/local/opt/onnxruntime/lib", "/usr/lib")
	}
	dirs := filepath.SplitList(getenv("LD_LIBRARY_PATH"))
	dirs = append(dirs, "/usr/local/lib", "/usr/local/lib64", "/usr/lib", "/usr/lib64")
	debian, _ := filepath.Glob("/usr/lib/*-linux-gnu") // the pattern is valid
	return append(append(dirs, debian...), "/opt/onnxruntime/lib", "/home/linuxbrew/.linuxbrew/lib")
}

// pythonGlobs returns patterns for the library inside Python's onnxruntime packages. It does not
// start Python, which would take longer than the whole search.
func pythonGlobs(goos string, getenv func(string) string) []string {
	var prefixes []string
	if venv := getenv("VIRTUAL_ENV"); venv != "" {
		prefixes = append(prefixes, venv)
	}
	if python, err := exec.LookPath("python3"); err == nil {
		prefixes = append(prefixes, filepath.Dir(filepath.Dir(python)))
		if real, err := filepath.EvalSymlinks(python); err == nil {
			prefixes = append(prefixes, filepath.Dir(filepath.Dir(real)))
		}
	}
	if home := getenv("HOME"); home != "" {
		prefixes = append(prefixes, filepath.Join(home, ".local"), filepath.Join(home, ".pyenv", "versions", "*"))
	}
	prefixes = append(prefixes, "/usr", "/usr/local")

	var globs []string
	for _, prefix := range prefixes {
		globs = append(globs, siteGlobs(goos, prefix)...)
	}
	return globs
}

// siteGlobs returns patterns for the library in a Python installation or virtual environment at prefix.
func siteGlobs(goos, prefix string) (globs []string) {
	for _, site := range []string{"python3*/site-packages", "python3*/dist-packages", "site-packages"} {
		globs = append(globs, filepath.Join(prefix, "lib", filepath.FromSlash(site), "onnxruntime", "capi",
			namingOf(goos).glob))
	}
	return globs
}
