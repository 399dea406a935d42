// Package pjrt opens NVIDIA GPUs for XLA programs: it looks for a driver, finds
// the PJRT plugin that jax installs, loads the CUDA libraries it needs and asks
// for its version, so that what is missing is said in words.
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

// EnvPlugin names the environment variable with the path of a PJRT plugin.
const EnvPlugin = "MIPLC_PJRT_PLUGIN"

// Options of Open. The zero value searches the plugin and computes in full
// float32.
type Options struct {
	Plugin string // path of the plugin; empty: EnvPlugin, else that of an installed jax
	TF32   bool   // let matrix products round their factors to 10 bits, which is faster
	// AnyVersion tries a plugin whose version is outside of what is known.
	AnyVersion bool
}

// The versions of the PJRT interface that are let through. Below the first a
// plugin lacks functions that are called; the last is the newest that was
// loaded and answered.
const (
	major       = 0
	oldestMinor = 104
	newestMinor = 116
)

// checkVersion says whether a plugin of that version may be used.
func checkVersion(path string, maj, min int) error {
	if maj == major && min >= oldestMinor && min <= newestMinor {
		return nil
	}
	return fmt.Errorf("the PJRT plugin %s speaks version %d.%d of the interface; known to fit are %d.%d to %d.%d: install a jax whose CUDA plugin has one of them, or set the option to try any version",
		path, maj, min, major, oldestMinor, major, newestMinor)
}

// plugins are the packages of jax that hold a plugin, the newest CUDA first.
var plugins = []string{"xla_cuda13", "xla_cuda12"}

const library = "xla_cuda_plugin.so"

// Find gives the path of the plugin: the given one if any, else that of
// EnvPlugin, else that of the jax which python3 finds or which stands in a
// usual place.
func Find(given string) (string, error) {
	for _, v := range []struct{ path, from string }{{given, "the option"}, {os.Getenv(EnvPlugin), EnvPlugin}} {
		if v.path == "" {
			continue
		}
		path, err := filepath.Abs(v.path)
		if err != nil {
			return "", err
		}
		if info, err := os.Stat(path); err != nil || info.IsDir() {
			return "", fmt.Errorf("%s names the PJRT plugin %s, which is no file there", v.from, v.path)
		}
		return path, nil
	}
	if found := installed(); len(found) > 0 {
		return found[0], nil
	}
	return "", errors.New("no PJRT plugin for CUDA was found: install it with pip install \"jax[cuda13]\", or set " + EnvPlugin + " to the path of a " + library)
}

// pythonPlaces asks python3 where its packages are.
func pythonPlaces() []string {
	python, err := exec.LookPath("python3")
	if err != nil {
		return nil
	}
	out, err := exec.Command(python, "-c", `import sys; print("\n".join(sys.path))`).Output()
	if err != nil {
		return nil
	}
	return strings.Fields(string(out))
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

// nvidia is the folder of NVIDIA's Python packages that belong to a plugin:
// beside jax_plugins.
func nvidia(plugin string) string {
	return filepath.Join(filepath.Dir(filepath.Dir(filepath.Dir(plugin))), "nvidia")
}

// wanted lists the CUDA libraries in an order in which each finds those before
// it.
var wanted = []string{
	"libcudart", "libnvrtc", "libnvJitLink", "libcublasLt", "libcublas", "libnccl", "libcupti",
	"libcusparse", "libcusolver", "libcufft", "libnvshmem_host", "libcudnn",
}

// libraries finds the wanted libraries below a folder of NVIDIA's packages and
// names those that are missing.
func libraries(folder string) (paths, missing []string) {
	for _, name := range wanted {
		match, _ := filepath.Glob(filepath.Join(folder, "*", "lib", name+".so.*"))
		if len(match) == 0 {
			missing = append(missing, name)
			continue
		}
		slices.Sort(match)
		paths = append(paths, match[len(match)-1])
	}
	return paths, missing
}

// toolkit is the folder below NVIDIA's packages that holds what the compiler of
// XLA needs beside libraries (libdevice, ptxas), empty if there is none.
func toolkit(folder string) string {
	for _, part := range []string{filepath.Join("nvvm", "libdevice"), filepath.Join("bin", "ptxas")} {
		if match, _ := filepath.Glob(filepath.Join(folder, "*", part)); len(match) > 0 {
			return strings.TrimSuffix(match[len(match)-1], string(filepath.Separator)+part)
		}
	}
	return ""
}

// setDefault sets an environment variable that the user has not set.
func setDefault(name, value string) {
	if _, set := os.LookupEnv(name); !set {
		os.Setenv(name, value)
	}
}
