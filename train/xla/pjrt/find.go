package pjrt

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// ErrNoPlugin is the error of Find where no plugin is named or installed.
var ErrNoPlugin = errors.New("no PJRT plugin was found")

// Remedy tells what to do where Find finds nothing.
func Remedy(kind Kind) string {
	if kind == CPU {
		return "`miplc runtime install xla` fetches one for CPUs, or set " + EnvPlugin + " to its path"
	}
	return "pip install \"jax[cuda13]\" brings one for CUDA, or set " + EnvPlugin + " to the path of a " + cudaLibrary
}

// Find gives the path of the plugin for a kind of device: the given one if any,
// else that of EnvPlugin; else for CPUs the one that Install put into the cache,
// for GPUs that of the jax which python3 finds or which stands in a usual place.
// Where there is none the error is ErrNoPlugin.
func Find(kind Kind, given string) (string, error) {
	if list := named(given); len(list) > 0 {
		v := list[0]
		path, err := filepath.Abs(v.Path)
		if err != nil {
			return "", err
		}
		if info, err := os.Stat(path); err != nil || info.IsDir() {
			return "", fmt.Errorf("%s names the PJRT plugin %s, which is no file there", v.Origin, v.Path)
		}
		return path, nil
	}
	if found := installed(kind); len(found) > 0 {
		return found[0], nil
	}
	return "", fmt.Errorf("%w for %s: %s", ErrNoPlugin, kind, Remedy(kind))
}

// named lists the plugins that the user names.
func named(given string) (list []Candidate) {
	for _, c := range []Candidate{{Path: given, Origin: "option"}, {Path: os.Getenv(EnvPlugin), Origin: EnvPlugin}} {
		if c.Path != "" {
			list = append(list, c)
		}
	}
	return list
}

// installed lists the plugins for a kind of device that nobody named.
func installed(kind Kind) []string {
	if kind == CUDA {
		return ofJAX()
	}
	s, err := slot()
	if err != nil || s.Check(false) != nil {
		return nil
	}
	return []string{s.Path}
}

// jaxPlugins are the packages of jax that hold a plugin, the newest CUDA first.
var jaxPlugins = []string{"xla_cuda13", "xla_cuda12"}

const cudaLibrary = "xla_cuda_plugin.so"

// ofJAX lists the plugins of every jax that is found, the newest CUDA first.
func ofJAX() []string {
	var list []string
	places := append(pythonPlaces(), usualPlaces()...)
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

// pythonPlaces asks python3 where its packages are.
func pythonPlaces() []string {
	python, err := exec.LookPath("python3")
	if err != nil {
		return nil
	}
	out, err := exec.Command(python, "-c", `import sys; print("\0".join(sys.path))`).Output()
	if err != nil {
		return nil
	}
	places := strings.Split(strings.TrimRight(string(out), "\r\n"), "\x00")
	return slices.DeleteFunc(places, func(place string) bool { return place == "" }) // the folder of the command
}

// usualPlaces are the folders of packages of the active virtual environment,
// the user and the system, the newest Python first.
func usualPlaces() []string {
	home, _ := os.UserHomeDir()
	var found []string
	for _, base := range []string{os.Getenv("VIRTUAL_ENV"), filepath.Join(home, ".local"), "/usr/local", "/usr"} {
		if base == "" {
			continue
		}
		for _, kind := range []string{"site-packages", "dist-packages"} {
			match, _ := filepath.Glob(filepath.Join(base, "lib", "python3*", kind))
			slices.Reverse(match)
			found = append(found, match...)
		}
	}
	return found
}
