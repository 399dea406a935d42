// The search for the onnxruntime shared library on this machine, without loading it, and the installation of a pinned
// version in miplc's cache with npm or pip.

package onnxruntime

import (
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/miplc/miplc/internal/libraries"
)

const (
	// Version is the release that Install fetches.
	Version = "1.27.0"
	// minVersion is the oldest supported release: the Go binding needs version 24 of the C API,
	// which release 1.24 introduced.
	minVersion = "1.24"

	// EnvLibrary is the environment variable with the path of the library. Only an explicit path
	// has precedence.
	EnvLibrary = "ONNXRUNTIME_SHARED_LIBRARY_PATH"
	// EnvLibraryOwn is read after EnvLibrary, for a library that only miplc should use.
	EnvLibraryOwn = "MIPLC_ONNXRUNTIME"

	// Remedy is the advice if no library is found or the one found cannot be loaded.
	Remedy = "run `miplc runtime install`, or set " + EnvLibrary + " to a library of version " + minVersion + " or later"
)

// FoundBy is the rule by which a candidate was found.
type FoundBy string

// The places searched, in order. The user chooses the first two, so any file there is accepted.
// Files from the other places must pass libraries.CheckTrust.
const (
	FromOption     FoundBy = "option"      // path given by the caller or a flag
	FromEnv        FoundBy = "environment" // EnvLibrary, then EnvLibraryOwn
	FromCache      FoundBy = "cache"       // where Install puts it
	FromExecutable FoundBy = "executable"  // the directory of the running binary, and the Python environment around it
	FromSystem     FoundBy = "system"      // library directories of the system and of Homebrew
	FromPython     FoundBy = "python"      // the onnxruntime package of a Python installation
)

// Verdict is the outcome of checking a candidate. Whether the file loads is known only after Start.
type Verdict string

// Verdicts of a candidate.
const (
	VerdictFound      Verdict = "found"
	VerdictNotFound   Verdict = "not found"
	VerdictTooOld     Verdict = "too old"
	VerdictNotLibrary Verdict = "not a usable library" // a folder, cut off, not the pinned file, or the loader rejects it
	VerdictRefused    Verdict = "refused"              // another user of the machine could have put it there
)

// Library is a library that was found.
type Library struct {
	Path    string  `json:"path"`
	Version string  `json:"version"` // "1.27.0"; until it is loaded, that of the file name, which may be empty
	Origin  FoundBy `json:"origin"`
}

// Candidate is a place that was searched, and the result.
type Candidate struct {
	Path    string  `json:"path"`
	Origin  FoundBy `json:"origin"`
	Exists  bool    `json:"exists"`
	Version string  `json:"version,omitempty"` // empty when unknown
	Verdict Verdict `json:"verdict"`
	Detail  string  `json:"detail,omitempty"` // why the verdict is not Found, or a remark

	loadFailed bool
}

// NotFoundError reports that no place has a usable library.
type NotFoundError struct {
	Tried   []Candidate
	noCache error // why the cache was not searched; nil if it was, or if the user named a library
}

// Installed reports whether the library that InstallLibrary writes is in the cache, but does not load.
func (e *NotFoundError) Installed() bool {
	return slices.ContainsFunc(e.Tried, func(c Candidate) bool { return c.Origin == FromCache && c.loadFailed })
}

// Named reports whether the user named a library, by an option or in the environment, that is not
// usable.
func (e *NotFoundError) Named() bool {
	return slices.ContainsFunc(e.Tried, func(c Candidate) bool { return c.Origin == FromOption || c.Origin == FromEnv })
}

// Error lists the candidates and the remedy.
func (e *NotFoundError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "no usable onnxruntime library (version %s or later); tried:", minVersion)
	if e.noCache != nil {
		fmt.Fprintf(&b, "\n  %s: %v", FromCache, e.noCache)
	}
	missing := 0
	for _, c := range e.Tried {
		named := c.Origin == FromOption || c.Origin == FromEnv || c.Origin == FromCache
		if !c.Exists && !named {
			missing++
			continue
		}
		fmt.Fprintf(&b, "\n  %s (%s): %s", c.Path, c.Origin, c.Verdict)
		if c.Detail != "" {
			b.WriteString(": " + c.Detail)
		}
	}
	if missing > 0 {
		fmt.Fprintf(&b, "\n  and %d more places that hold none", missing)
	}
	b.WriteString("\n" + e.Remedy())
	return b.String()
}

// Remedy returns the advice for the user. An installed library does not help as long as another one is
// named.
func (e *NotFoundError) Remedy() string {
	switch {
	case e.Installed():
		return "make it loadable, or set " + EnvLibrary + " to a library of version " + minVersion + " or later"
	case !e.Named():
		return Remedy
	case e.Tried[0].Origin == FromOption:
		return "correct the path of the library, or leave it out"
	}
	return "correct or remove the environment variable " + EnvLibrary + " or " + EnvLibraryOwn
}

// FindLibrary returns the first usable library in the order path, environment, cache, directory of the
// executable, system, Python. path is a library or a directory that contains one, or empty. If path or
// the environment names a library and it is not usable, FindLibrary returns an error instead of another
// library. A library in the cache must have the pinned SHA-256. Libraries in the other places are
// rejected if another user than root could have put them there, see VerdictRefused. The error is a
// *NotFoundError.
func FindLibrary(path string) (Library, error) {
	return here().find(path, func(string) error { return nil })
}

// Candidates checks every place, in the order of FindLibrary.
func Candidates(path string) []Candidate { return slices.Collect(here().candidates(path)) }

// find returns the first usable library that load accepts. The error of load completes a sentence about the file.
func (p places) find(path string, load func(path string) error) (Library, error) {
	none := &NotFoundError{noCache: p.cacheErr}
	for c := range p.candidates(path) {
		if c.Verdict == VerdictFound {
			// The dynamic linker would search for a name without a folder elsewhere.
			absolute, err := filepath.Abs(c.Path)
			if err == nil {
				err = load(absolute)
			}
			if err == nil {
				return Library{Path: absolute, Version: c.Version, Origin: c.Origin}, nil
			}
			c.Verdict, c.Detail, c.loadFailed = VerdictNotLibrary, err.Error(), true
		}
		if none.Tried = append(none.Tried, c); none.Named() {
			none.noCache = nil
			break
		}
	}
	return Library{}, none
}

// candidates checks the libraries in the order of the search.
func (p places) candidates(named string) iter.Seq[Candidate] {
	return func(yield func(Candidate) bool) {
		seen := map[string]bool{}
		for origin, path := range p.paths(named) {
			real := realName(path)
			if seen[real] {
				continue
			}
			c := p.checkAt(path, origin)
			// The target of a link in a refused place may still be found by its own path.
			seen[real] = c.Verdict != VerdictRefused
			if !yield(c) {
				return
			}
		}
	}
}

// checkAt checks the file at path. Files that were not named explicitly must pass package
// trusted before they are read, and a file in the cache must be the one that Install downloaded.
func (p places) checkAt(path string, from FoundBy) Candidate {
	c := Candidate{Path: path, Origin: from}
	is := func(v Verdict, detail string) Candidate {
		c.Verdict, c.Detail = v, detail
		return c
	}
	info, err := os.Stat(path)
	switch {
	case os.IsNotExist(err):
		return is(VerdictNotFound, "")
	case err != nil:
		return is(VerdictNotFound, err.Error())
	}
	c.Exists = true
	if info.IsDir() {
		return is(VerdictNotLibrary, "is a directory without "+namingOf(p.goos).plain)
	}
	if from != FromOption && from != FromEnv {
		if err := libraries.CheckTrust(path); err != nil {
			return is(VerdictRefused, err.Error())
		}
	}
	if from == FromCache {
		slots, replace := p.slots(), "--force"
		own := slots[slices.IndexFunc(slots, func(s libraries.Slot) bool { return s.Path == path })]
		if path != p.cachePath() {
			replace = "cuda"
		}
		if err := own.Check(); err != nil {
			return is(VerdictNotLibrary, err.Error()+"; `miplc runtime install "+replace+"` replaces it")
		}
	}
	if err := libraries.CheckComplete(path); err != nil {
		return is(VerdictNotLibrary, err.Error())
	}
	c.Version = versionInName(realName(path))
	if c.Version != "" && compareVersions(c.Version, minVersion) < 0 {
		return is(VerdictTooOld, fmt.Sprintf("version %s, miplc needs %s or later", c.Version, minVersion))
	}
	return is(VerdictFound, "")
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
	part := func(version string, i int) int {
		parts := append(strings.Split(version, "."), make([]string, i+1)...)
		n, _ := strconv.Atoi(parts[i])
		return n
	}
	for i := range max(strings.Count(a, "."), strings.Count(b, ".")) + 1 {
		if d := part(a, i) - part(b, i); d != 0 {
			return d
		}
	}
	return 0
}
