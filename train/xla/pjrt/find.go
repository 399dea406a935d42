// The search for installed PJRT plugins, and the choice of one.

package pjrt

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/miplc/miplc/internal/libraries"
)

// errNoPlugin is the error of Find if no plugin is named or installed.
var errNoPlugin = errors.New("no PJRT plugin was found")

// Remedy returns advice for errNoPlugin.
func Remedy(kind Kind) string {
	if kind == CPU {
		return "`miplc runtime install xla` fetches one for CPUs, or set " + EnvPlugin + " to its path"
	}
	return "pip install \"jax[cuda13]\" brings one for CUDA, or set " + EnvPlugin + " to the path of a " + cudaLibrary
}

// Find returns the path of the plugin for a kind of device: given if it is not empty, else that of
// EnvPlugin; else, for CPUs, the one that Install downloaded, and for GPUs that of the jax that
// python3 finds. Plugins that were not named are rejected if another user than root could have put them there; the one
// in the cache must have the pinned SHA-256. Without a plugin, the error is errNoPlugin.
func Find(kind Kind, given string) (string, error) {
	if list := named(given); len(list) > 0 {
		v := list[0]
		path, err := filepath.Abs(v.Path)
		if err != nil {
			return "", err
		}
		if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
			return "", fmt.Errorf("%s names the PJRT plugin %s, which is not a file", v.Origin, v.Path)
		}
		return path, nil
	}
	var refused strings.Builder
	for _, c := range installed(kind) {
		if c.Verdict == "" {
			return c.Path, nil
		}
		fmt.Fprintf(&refused, "; %s: %s", c.Path, c.Verdict)
	}
	return "", fmt.Errorf("%w for %s%s: %s", errNoPlugin, kind, refused.String(), Remedy(kind))
}

// named lists the plugins that the user named.
func named(given string) (list []FoundPlugin) {
	for _, c := range []FoundPlugin{{Path: given, Origin: "option"}, {Path: os.Getenv(EnvPlugin), Origin: EnvPlugin}} {
		if c.Path != "" {
			list = append(list, c)
		}
	}
	return list
}

// installed lists the plugins for a kind of device that the user did not name. Those with a verdict
// are not used.
func installed(kind Kind) (list []FoundPlugin) {
	if kind == CPU {
		s, err := slot()
		if err != nil {
			return nil
		}
		switch err := s.Check(); {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return []FoundPlugin{{Path: s.Path, Origin: originCache, Kind: kind, Verdict: err.Error() +
				"; `miplc runtime install xla --force` replaces it"}}
		}
		return []FoundPlugin{{Path: s.Path, Origin: originCache, Kind: kind}}
	}
	for _, path := range ofJAX() {
		c := FoundPlugin{Path: path, Origin: originPython, Kind: kind}
		if err := libraries.CheckTrust(path); err != nil {
			c.Verdict = "refused: " + err.Error()
		}
		list = append(list, c)
	}
	return list
}

// jaxPlugins are the packages of jax that contain a plugin, the newest CUDA first.
var jaxPlugins = []string{"xla_cuda13", "xla_cuda12"}

const cudaLibrary = "xla_cuda_plugin.so"

// ofJAX lists the plugins of the jax that python3 finds, the newest CUDA first.
func ofJAX() []string {
	var list []string
	places := pythonPlaces()
	for _, name := range jaxPlugins {
		for _, site := range places {
			path := filepath.Join(site, "jax_plugins", name, cudaLibrary)
			if _, err := os.Stat(path); err == nil && !slices.Contains(list, path) {
				list = append(list, path)
			}
		}
	}
	return list
}

// pythonPlaces returns the folders in which python3 searches for packages.
func pythonPlaces() []string {
	python, err := exec.LookPath("python3")
	if err != nil {
		return nil
	}
	cmd := exec.Command(python, "-c", `import sys; print("\0".join(sys.path))`)
	// An empty element of PYTHONPATH means the working folder, which may be an unpacked download
	// from which Python would load modules.
	cmd.Dir = string(filepath.Separator)
	out, err := cmd.Output()
	if err != nil {
		return nil
	}
	places := strings.Split(strings.TrimRight(string(out), "\r\n"), "\x00")
	// such as the folder of the command
	return slices.DeleteFunc(places, func(place string) bool { return !filepath.IsAbs(place) })
}

// FoundPlugin is a plugin that was named or found.
type FoundPlugin struct {
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
func Candidates(given string) []FoundPlugin {
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
func loadFirst(list []FoundPlugin, behind bool) {
	for i := range list {
		switch c := &list[i]; {
		case c.Verdict != "": // refused
		case behind:
			c.Verdict = "not used: the one above takes precedence"
		default:
			c.check()
			behind = true
		}
	}
}

// check loads a plugin and sets its version and verdict.
func (c *FoundPlugin) check() {
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
	if _, missing := cudaLibraries(packages(c.Path), c.Origin != originPython); len(missing) > 0 {
		c.Verdict += fmt.Sprintf("; %d CUDA libraries are missing in its installation and must be on the system",
			len(missing))
	}
}
