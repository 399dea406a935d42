package pjrt

import (
	"fmt"
	"os"
	"path/filepath"
)

// Candidate is a place where a plugin was looked for and something was named or
// found.
type Candidate struct {
	Path    string `json:"path"`
	Origin  string `json:"origin"`            // option, environment, or python
	Version string `json:"version,omitempty"` // of the PJRT interface, of the one that would be taken
	Usable  bool   `json:"usable"`
	Verdict string `json:"verdict"`
}

// Candidates lists the plugins in the order of Find. The first one that is there
// is the one that would be taken: it is loaded and asked for its version, which
// needs no GPU. Nothing else is loaded.
func Candidates(given string) []Candidate {
	var list []Candidate
	for _, v := range []struct{ path, origin string }{{given, "option"}, {os.Getenv(EnvPlugin), "environment"}} {
		if v.path != "" {
			list = append(list, Candidate{Path: v.path, Origin: v.origin})
		}
	}
	for _, path := range installed() {
		list = append(list, Candidate{Path: path, Origin: "python"})
	}
	taken := false
	for i := range list {
		c := &list[i]
		switch info, err := os.Stat(c.Path); {
		case err != nil || info.IsDir():
			c.Verdict = "is no file"
			taken = taken || c.Origin != "python" // one that is named is not passed over
		case taken:
			c.Verdict = "stands behind the one above"
		default:
			taken = true
			c.judge()
		}
	}
	return list
}

// judge loads a plugin.
func (c *Candidate) judge() {
	if path, err := filepath.Abs(c.Path); err == nil {
		c.Path = path
	}
	maj, min, err := Version(c.Path)
	if err != nil {
		c.Verdict = err.Error()
		return
	}
	c.Version = fmt.Sprintf("%d.%d", maj, min)
	if err := checkVersion(c.Path, maj, min); err != nil {
		c.Verdict = fmt.Sprintf("its version is outside of %d.%d to %d.%d", major, oldestMinor, major, newestMinor)
		return
	}
	c.Usable, c.Verdict = true, "usable"
	if _, missing := libraries(nvidia(c.Path)); len(missing) > 0 {
		c.Verdict = fmt.Sprintf("usable; %d CUDA libraries are not beside it and must be on the system", len(missing))
	}
}

// installed lists the plugins of every jax that is found, the newest CUDA first.
func installed() []string {
	var list []string
	seen := map[string]bool{}
	places := append(pythonPlaces(), usualPlaces()...)
	for _, name := range plugins {
		for _, site := range places {
			path := filepath.Join(site, "jax_plugins", name, library)
			if _, err := os.Stat(path); err == nil && !seen[path] {
				seen[path] = true
				list = append(list, path)
			}
		}
	}
	return list
}
