// Plugins are found, checked and refused.

package pjrt

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/miplc/miplc/internal/libraries"
)

// put makes empty files.
func put(t *testing.T, paths ...string) {
	t.Helper()
	for _, p := range paths {
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// bare hides everything on the machine that Find could find.
func bare(t *testing.T) (home string) {
	home = filepath.Join(t.TempDir(), "home[1]")
	for name, value := range map[string]string{"HOME": home, "XDG_CACHE_HOME": "", libraries.EnvCache: "", EnvPlugin: "",
		"PATH": t.TempDir()} {
		t.Setenv(name, value)
	}
	return home
}

// python puts a python3 on the path that searches these folders for packages.
func python(t *testing.T, folders ...string) {
	t.Helper()
	script := "#!/bin/sh\nprintf '%s\\0'"
	for _, folder := range folders {
		script += " '" + folder + "'"
	}
	if err := os.WriteFile(filepath.Join(os.Getenv("PATH"), "python3"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
}

// Find locates packages in folders of any name in which Python searches.
func TestFindWhatPythonKnows(t *testing.T) {
	python, err := exec.Command("python3", "-c", "import sys; print(sys.executable)").Output()
	if err != nil {
		t.Skipf("there is no python3 on this machine to ask: %v", err)
	}
	home := bare(t)
	site := filepath.Join(home, "my packages")
	t.Setenv("PYTHONPATH", site)
	t.Setenv("PATH", filepath.Dir(string(python)))
	plugin := filepath.Join(site, "jax_plugins/xla_cuda13", cudaLibrary)
	put(t, plugin)
	if got, err := Find(CUDA, ""); err != nil || got != plugin {
		t.Errorf("found %s, %v; want %s", got, err, plugin)
	}
}

func TestFind(t *testing.T) {
	home := bare(t)
	site := filepath.Join(home, ".local/lib/python3.11/site-packages")
	user := filepath.Join(site, "jax_plugins/xla_cuda12", cudaLibrary)
	put(t, user)
	python(t, site)
	if got, err := Find(CUDA, ""); err != nil || got != user {
		t.Errorf("found %s, %v in the user's packages", got, err)
	}
	venv := filepath.Join(t.TempDir(), "venv[1]")
	newer := filepath.Join(venv, "jax_plugins/xla_cuda13", cudaLibrary)
	put(t, newer)
	python(t, site, venv)
	if got, err := Find(CUDA, ""); err != nil || got != newer {
		t.Errorf("found %s, %v; want that for the newer CUDA", got, err)
	}
	t.Setenv(EnvPlugin, user)
	if got, err := Find(CUDA, ""); err != nil || got != user {
		t.Errorf("found %s, %v; want that of the environment variable", got, err)
	}
	if got, err := Find(CUDA, newer); err != nil || got != newer {
		t.Errorf("found %s, %v; want that of the option", got, err)
	}
	if _, err := Find(CUDA, home); err == nil || !strings.Contains(err.Error(), "not a file") {
		t.Errorf("a folder as plugin: %v", err)
	}
}

// A plugin that is named but missing is not replaced by another one.
func TestCandidates(t *testing.T) {
	home := bare(t)
	user := filepath.Join(home, "jax_plugins/xla_cuda12", cudaLibrary)
	put(t, user)
	python(t, home)
	got := Candidates("")
	if len(got) == 0 || got[0].Path != user || got[0].Usable || got[0].Verdict == "" {
		t.Errorf("an empty file as plugin: %+v", got)
	}
	t.Setenv(EnvPlugin, filepath.Join(home, "nothing.so"))
	got = Candidates("")
	if len(got) < 2 || got[0].Origin != EnvPlugin || got[0].Verdict != "is not a file" ||
		got[1].Verdict != "not used: the one above takes precedence" {
		t.Errorf("a missing file before it: %+v", got)
	}
}

func TestFindNothing(t *testing.T) {
	bare(t)
	if path, err := Find(CUDA, ""); err == nil { // the system itself may have jax for CUDA
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	} else if !strings.Contains(err.Error(), "pip install") || !strings.Contains(err.Error(), EnvPlugin) {
		t.Errorf("the error does not say what to do: %v", err)
	}
}

// A plugin that another user could have installed is rejected with a reason, unless the user names
// it.
func TestFindRefusesWhatOthersCanChange(t *testing.T) {
	home := bare(t)
	site := filepath.Join(home, "jax_plugins")
	python(t, home)
	open, good := filepath.Join(site, "xla_cuda13", cudaLibrary), filepath.Join(site, "xla_cuda12", cudaLibrary)
	put(t, open, good)
	if err := os.Chmod(open, 0o666); err != nil {
		t.Fatal(err)
	}
	if got, err := Find(CUDA, ""); err != nil || got != good {
		t.Errorf("found %s, %v; want %s", got, err, good)
	}
	if list := Candidates(""); list[0].Path != open || list[0].Usable ||
		!strings.HasPrefix(list[0].Verdict, "refused: every user can write to") {
		t.Errorf("%+v", list)
	}
	if got, err := Find(CUDA, open); err != nil || got != open {
		t.Errorf("the named plugin: %s, %v", got, err)
	}
	if err := os.Remove(good); err != nil {
		t.Fatal(err)
	}
	if _, err := Find(CUDA, ""); err == nil || !strings.Contains(err.Error(), open+": refused") {
		t.Errorf("the rejected plugin is not reported: %v", err)
	}
}

// The plugin in the cache must have the pinned bytes, not only their number.
func TestFindChecksTheHash(t *testing.T) {
	bare(t)
	s, err := slot()
	if err != nil || len(s.Pins) == 0 {
		t.Skip("no plugin is pinned for this system")
	}
	put(t, s.Path)
	if err := os.Truncate(s.Path, s.Pins[0].Size); err != nil {
		t.Fatal(err)
	}
	if path, err := Find(CPU, ""); err == nil || !strings.Contains(err.Error(), "SHA-256") {
		t.Errorf("found %s, %v, which has other bytes", path, err)
	}
}

// The libraries are returned in the order of their dependencies.
func TestLibraries(t *testing.T) {
	site := filepath.Join(t.TempDir(), "site[1]")
	plugin := filepath.Join(site, "jax_plugins", "xla_cuda13", cudaLibrary)
	blas, runtime := filepath.Join(site, "nvidia/cu13/lib/libcublas.so.13"), filepath.Join(site,
		"nvidia/cu13/lib/libcudart.so.13")
	nn := filepath.Join(site, "nvidia/cudnn/lib/libcudnn.so.9")
	put(t, plugin, blas, nn, runtime, filepath.Join(site, "nvidia/cu13/nvvm/libdevice/libdevice.10.bc"))
	paths, missing := cudaLibraries(packages(plugin), false)
	if want := []string{runtime, blas, nn}; !reflect.DeepEqual(paths, want) {
		t.Errorf("libraries %v, want %v", paths, want)
	}
	if len(missing) != len(wanted)-3 {
		t.Errorf("missing are %v", missing)
	}
	if got, want := toolkit(packages(plugin)), filepath.Join(site, "nvidia/cu13"); got != want {
		t.Errorf("toolkit %s, want %s", got, want)
	}
}

func TestCheckVersion(t *testing.T) {
	for _, v := range []struct {
		major, minor int
		fits         bool
		says         string
	}{
		{0, oldestMinor, true, ""}, {0, newestMinor, true, ""}, {0, newestMinor + 1, true, "newer than 0.116"},
		{0, oldestMinor - 1, false, "headers of 0.104"}, {1, oldestMinor, false, "from 0.81 on"},
	} {
		remark, err := checkVersion(v.major, v.minor)
		if err != nil {
			remark = err.Error()
		}
		if (err == nil) != v.fits || !strings.Contains(remark, v.says) {
			t.Errorf("version %d.%d: %q, %v", v.major, v.minor, remark, err)
		}
	}
}

// Find returns a CPU plugin that Install put into the cache completely.
func TestFindInstalled(t *testing.T) {
	bare(t)
	if path, err := Find(CPU, ""); !errors.Is(err, errNoPlugin) ||
		!strings.Contains(err.Error(), "miplc runtime install xla") {
		t.Errorf("found %s, %v without any", path, err)
	}
	s, err := slot()
	if err != nil {
		t.Fatal(err)
	}
	put(t, s.Path)
	if path, err := Find(CPU, ""); len(s.Pins) > 0 && !errors.Is(err, errNoPlugin) {
		t.Errorf("found %s, %v, which is an empty file", path, err)
	}
	named := filepath.Join(t.TempDir(), "p.so")
	put(t, named)
	t.Setenv(EnvPlugin, named)
	if path, err := Find(CPU, ""); err != nil || path != named {
		t.Errorf("found %s, %v; want that of the environment variable", path, err)
	}
}

// Every pin is complete.
func TestPins(t *testing.T) {
	for system, p := range pins {
		if raw, err := hex.DecodeString(p.SHA256); err != nil || len(raw) != sha256.Size || p.Size < 1<<20 ||
			p.Platform == "" || p.Download == 0 {
			t.Errorf("%s: %+v is broken", system, p)
		}
	}
}

// Only the pinned plugin gets options, only while it opens, and they do not replace those of the
// user.
func TestTuned(t *testing.T) {
	bare(t)
	s, err := slot()
	if err != nil || len(s.Pins) == 0 || s.Pins[0].Archive != tunedPackage {
		t.Skip("no plugin with options is pinned for this system")
	}
	system, pin := s.System, s.Pins[0]
	t.Cleanup(func() { pins[system] = pin })
	empty := sha256.Sum256(nil)
	fake := pin
	fake.Size, fake.SHA256 = 0, hex.EncodeToString(empty[:])
	pins[system] = fake
	put(t, s.Path)
	t.Setenv(envFlags, "the user's")
	for _, c := range []struct{ path, user, want string }{
		{s.Path, "", tunedFlags}, {s.Path, "--mine", "--mine"}, {filepath.Join(t.TempDir(), "other.so"),
			"", ""},
	} {
		os.Unsetenv(envFlags)
		if c.user != "" {
			os.Setenv(envFlags, c.user)
		}
		client, untuned := tuned(c.path)
		if (client != nil) != (c.path == s.Path) {
			t.Errorf("%s: the client gets %v", c.path, client)
		}
		if got := os.Getenv(envFlags); got != c.want {
			t.Errorf("%s, user's %q: options %q while it opens, want %q", c.path, c.user, got, c.want)
		}
		untuned()
		if got := os.Getenv(envFlags); got != c.user {
			t.Errorf("%s: options %q afterwards, want %q", c.path, got, c.user)
		}
	}
}
