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
	Origin  string `json:"origin"`            // option, MIPLC_PJRT_PLUGIN, cache, or python
	Kind    Kind   `json:"kind,omitempty"`    // of device; empty where trying alone can tell
	Version string `json:"version,omitempty"` // of the PJRT interface, of one that would be taken
	Usable  bool   `json:"usable"`            // it loads and its version fits
	Verdict string `json:"verdict"`
}

// Origins of plugins that nobody named.
const (
	originCache  = "cache"
	originPython = "python"
)

// Candidates lists the plugins in the order of Find. Those that would be taken,
// for each kind of device the first that is there, are loaded and asked for their
// versions, which needs no device. Nothing else is loaded.
func Candidates(given string) []Candidate {
	list := named(given)
	for i := range list {
		if i > 0 {
			list[i].Verdict = "stands behind the one above"
			continue
		}
		list[i].judge()
	}
	behind := len(list) > 0
	for _, kind := range []Kind{CPU, CUDA} {
		behind := behind
		for _, c := range installed(kind) {
			switch {
			case c.Verdict != "": // refused
			case behind:
				c.Verdict = "stands behind the one above"
			default:
				c.judge()
				behind = true
			}
			list = append(list, c)
		}
	}
	return list
}

// judge loads a plugin.
func (c *Candidate) judge() {
	if info, err := os.Stat(c.Path); err != nil || info.IsDir() {
		c.Verdict = "is no file"
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
	c.Usable, c.Verdict = true, "fits"
	if remark != "" {
		c.Verdict += "; " + remark
	}
	if c.Kind != CUDA {
		return
	}
	if _, missing := libraries(nvidia(c.Path), libraryCheck(c.Origin != originPython)); len(missing) > 0 {
		c.Verdict += fmt.Sprintf("; %d CUDA libraries are not beside it and must be on the system", len(missing))
	}
}
