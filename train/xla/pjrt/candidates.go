// Where plugins are looked for, and what was found.

package pjrt

import (
	"fmt"
	"os"
	"path/filepath"
)

// Candidate is a plugin that was named or found.
type Candidate struct {
	Path    string `json:"path"`
	Origin  string `json:"origin"`            // option, MIPLC_PJRT_PLUGIN, cache, or python
	Kind    Kind   `json:"kind,omitempty"`    // of device; empty if it is known only after loading
	Version string `json:"version,omitempty"` // of the PJRT interface, for plugins that would be used
	Usable  bool   `json:"usable"`            // it can be loaded and its version is supported
	Verdict string `json:"verdict"`
}

// Origins of plugins that the user did not name.
const (
	originCache  = "cache"
	originPython = "python"
)

// Candidates lists the plugins in the order of Find. It loads the first one for each kind of device
// to get its version, which needs no device. It does not load the others.
func Candidates(given string) []Candidate {
	list := named(given)
	loadFirst(list, false)
	behind := len(list) > 0
	for _, kind := range []Kind{CPU, CUDA} {
		found := installed(kind)
		loadFirst(found, behind)
		list = append(list, found...)
	}
	return list
}

// loadFirst loads the first plugin of a list that was not refused, unless others take precedence over all.
func loadFirst(list []Candidate, behind bool) {
	for i := range list {
		switch c := &list[i]; {
		case c.Verdict != "": // refused
		case behind:
			c.Verdict = "not used: the one above takes precedence"
		default:
			c.judge()
			behind = true
		}
	}
}

// judge loads a plugin and sets its version and verdict.
func (c *Candidate) judge() {
	if info, err := os.Stat(c.Path); err != nil || info.IsDir() {
		c.Verdict = "is not a file"
		return
	}
	if path, err := filepath.Abs(c.Path); err == nil {
		c.Path = path
	}
	maj, min, err := versionOf(c.Path)
	if err != nil {
		c.Verdict = err.Error()
		return
	}
	c.Version = fmt.Sprintf("%d.%d", maj, min)
	remark, err := checkVersion(maj, min)
	if err != nil {
		c.Verdict = err.Error()
		return
	}
	c.Usable, c.Verdict = true, "compatible"
	if remark != "" {
		c.Verdict += "; " + remark
	}
	if c.Kind != CUDA {
		return
	}
	if _, missing := libraries(packages(c.Path), c.Origin != originPython); len(missing) > 0 {
		c.Verdict += fmt.Sprintf("; %d CUDA libraries are missing in its installation and must be on the system",
			len(missing))
	}
}
