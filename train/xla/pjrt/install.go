// The plugin for CPUs that miplc installs.

package pjrt

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/miplc/miplc/internal/libraries"
)

// Plugin is a plugin for CPUs that Install downloads.
type Plugin struct {
	Path    string `json:"path"`
	Version string `json:"version"` // of the package that contains it
}

// pins has one published plugin for CPUs per system, each with its own package and version.
var pins = map[string]libraries.Pin{
	"linux/amd64": {Via: libraries.ViaPip, Archive: tunedPackage,
		Member:   "lammps_jax_pjrt_cpu/pjrt_c_api_cpu_plugin.so",
		Platform: "manylinux_2_27_x86_64", Size: 201600336, Download: 63,
		SHA256: "ad1309ac822b1b24d51b7f9947c7c9fa9ef5d67f390584cbc3d1fa2428fed9c2"},
	"linux/arm64": {Via: libraries.ViaPip, Archive: "xla-cpu-pjrt==0.0.1",
		Member:   "xla_plugins/xla_cpu_pjrt/xla_cpu_pjrt.so",
		Platform: "manylinux_2_27_aarch64", Size: 200328224, Download: 50,
		SHA256: "fcf411f3e8ff635c2b2cf87215aa7016f460e66d236c3db08309e7486583532d"},
}

// The options with which a pinned plugin trains many small models fastest: XLA's flags, read while the plugin opens,
// for matrix products on one core and YNNPACK only for convolutions, because it builds a pipeline for each op, and
// programs on the calling threads, so that they do not wait for each other. A plugin that does not know one of the
// flags would end the program.
const (
	tunedPackage = "lammps-jax-pjrt-cpu==0.11.2"
	tunedFlags   = "--xla_cpu_multi_thread_eigen=false --xla_cpu_experimental_ynn_fusion_type=individual_convolution"
)

// tuned sets the options for a plugin that Install downloaded, without XLA's flags if the user has
// set some. untuned removes the flags, because other plugins read them too.
func tuned(path string) (client map[string]any, untuned func()) {
	s, err := slot()
	if err != nil || path != s.Path || s.Check() != nil || len(s.Pins) == 0 || s.Pins[0].Archive != tunedPackage {
		return nil, func() {}
	}
	client = map[string]any{"asynchronous": false}
	if _, set := os.LookupEnv(envFlags); set {
		return client, func() {}
	}
	os.Setenv(envFlags, tunedFlags)
	return client, func() { os.Unsetenv(envFlags) }
}

// slot returns the plugin for CPUs in the cache. Its path is empty if the user has no cache.
func slot() (libraries.Slot, error) {
	system := runtime.GOOS + "/" + runtime.GOARCH
	p, ok := pins[system]
	p.System = system
	l := libraries.Release{Name: "the PJRT plugin for CPUs (" + p.Archive + ")",
		Remedy: "name the path of one in " + EnvPlugin + " or by --pjrt-plugin"}
	if ok {
		l.Pins = []libraries.Pin{p}
	} else {
		l.Name = "PJRT plugin for CPUs"
	}
	cache, err := libraries.CacheDir()
	if err != nil {
		return l.On(""), fmt.Errorf("%w; set %s to a directory", err, libraries.EnvCache)
	}
	return l.On(filepath.Join(cache, "pjrt-cpu", p.Archive, runtime.GOOS+"-"+runtime.GOARCH, "pjrt_c_api_cpu_plugin.so")),
		nil
}

// Install downloads the pinned plugin for CPUs of this system to the cache. If a valid one is
// already there, it does not use the network.
func Install(ctx context.Context, o libraries.InstallOptions) (Plugin, error) {
	s, err := slot()
	if err != nil {
		return Plugin{}, fmt.Errorf("cannot install %s: %w", s.Name, err)
	}
	if err := s.Install(ctx, o); err != nil {
		return Plugin{}, err
	}
	return Plugin{Path: s.Path, Version: s.Pins[0].Archive}, nil
}
