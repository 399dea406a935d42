// The places where the library is looked for.

package onnxruntime

import (
	"cmp"
	"iter"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/miplc/miplc/internal/fileio"
	"github.com/miplc/miplc/internal/libraries"
)

// places describes the machine for the search; tests replace it.
type places struct {
	goos, goarch string
	getenv       func(string) string
	executable   string   // path of the running binary, "" if unknown
	cache        string   // root of miplc's cache, "" if there is none
	cacheErr     error    // why cache is ""
	systemDirs   []string // directories of shared libraries
	pythonGlobs  []glob   // patterns of the library inside Python installations
	pins         []libraries.Pin
}

// here returns the description of the running process.
func here() places {
	p := places{goos: runtime.GOOS, goarch: runtime.GOARCH, getenv: os.Getenv, pins: pins}
	p.executable, _ = os.Executable() // "" if unknown
	p.cache, p.cacheErr = libraries.CacheDir()
	p.systemDirs = systemDirs(p.goos, p.getenv)
	p.pythonGlobs = pythonGlobs(p.goos, p.getenv)
	return p
}

// paths lists the places of the search in order. It looks into a folder only when the search reaches it.
func (p places) paths(named string) iter.Seq2[FoundBy, string] {
	return func(yield func(FoundBy, string) bool) {
		reached := true
		visit := func(from FoundBy, look func() []string) {
			if !reached {
				return
			}
			for _, path := range look() {
				reached = reached && yield(from, path)
			}
		}
		itself := func(path string) func() []string { return func() []string { return []string{path} } }
		if named != "" {
			visit(FromOption, itself(p.inDir(named)))
			return
		}
		for _, name := range []string{EnvLibrary, EnvLibraryOwn} {
			if v := p.getenv(name); v != "" {
				visit(FromEnv, itself(p.inDir(v)))
			}
		}
		if p.cache != "" {
			for _, s := range p.slots() {
				visit(FromCache, itself(s.Path))
			}
		}
		if p.executable != "" {
			dir := filepath.Dir(p.executable)
			for _, near := range []string{dir, filepath.Join(dir, "..", "lib")} {
				visit(FromExecutable, func() []string { return p.librariesIn(near) })
			}
			// pip installs the program of the Python package miplc and onnxruntime into one environment.
			for _, g := range siteGlobs(p.goos, filepath.Dir(dir), "") {
				visit(FromExecutable, g.newestFirst)
			}
		}
		for _, dir := range p.systemDirs {
			visit(FromSystem, func() []string { return p.librariesIn(dir) })
		}
		for _, g := range p.pythonGlobs {
			visit(FromPython, g.newestFirst)
		}
	}
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
	if found := (glob{path, namingOf(p.goos).glob}).newestFirst(); len(found) > 0 {
		return found[0]
	}
	return path
}

// librariesIn lists the onnxruntime libraries in a directory, or the path of the expected one if
// there are none.
func (p places) librariesIn(dir string) []string {
	if found := (glob{dir, namingOf(p.goos).glob}).newestFirst(); len(found) > 0 {
		return found
	}
	return []string{filepath.Join(dir, namingOf(p.goos).plain)}
}

// glob is a pattern, with slashes, of paths below a directory.
type glob struct{ dir, pattern string }

// newestFirst lists the paths of a pattern, libonnxruntime.so.1.27.0 before libonnxruntime.so.1.9.0
// and before names without a version.
func (g glob) newestFirst() []string {
	found := fileio.Glob(g.dir, g.pattern)
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
	dirs = append(dirs, fileio.Glob("/usr/lib", "*-linux-gnu")...)
	return append(dirs, "/opt/onnxruntime/lib", "/home/linuxbrew/.linuxbrew/lib")
}

// pythonGlobs returns patterns for the library inside Python's onnxruntime packages. It does not
// start Python, which would take longer than the whole search.
func pythonGlobs(goos string, getenv func(string) string) (globs []glob) {
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
		prefixes = append(prefixes, filepath.Join(home, ".local"))
	}
	for _, prefix := range prefixes {
		globs = append(globs, siteGlobs(goos, prefix, "")...)
	}
	if home := getenv("HOME"); home != "" {
		globs = append(globs, siteGlobs(goos, filepath.Join(home, ".pyenv", "versions"), "*")...)
	}
	return slices.Concat(globs, siteGlobs(goos, "/usr", ""), siteGlobs(goos, "/usr/local", ""))
}

// siteGlobs returns patterns for the library in the Python installations or virtual environments that match a pattern
// below a directory; "" is the directory itself.
func siteGlobs(goos, dir, pattern string) (globs []glob) {
	for _, site := range []string{"python3*/site-packages", "python3*/dist-packages", "site-packages"} {
		globs = append(globs, glob{dir, path.Join(pattern, "lib", site, "onnxruntime", "capi", namingOf(goos).glob)})
	}
	return globs
}
