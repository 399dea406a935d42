//go:build linux && cgo && (amd64 || arm64)

// Broken plugins and drivers, played by a library of the tests.

package pjrt

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// headers returns the folder of the pjrt_c_api.h that this program is built with.
var headers = sync.OnceValues(func() (string, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/gomlx/go-xla").Output()
	return filepath.Join(strings.TrimSpace(string(out)), "pjrt"), err
})

// standIn compiles a stand-in of testdata.
func standIn(t *testing.T, source, name string, args ...string) string {
	t.Helper()
	include, err := headers()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), name)
	args = append([]string{"-shared", "-fPIC", "-O0", "-I", include, "-o", path, source}, args...)
	if out, err := exec.Command("cc", args...).CombinedOutput(); err != nil {
		t.Fatalf("cc: %v\n%s", err, out)
	}
	return path
}

func plugin(t *testing.T, macros ...string) string {
	t.Helper()
	for i, m := range macros {
		macros[i] = "-D" + m
	}
	return standIn(t, "testdata/plugin.c", "plugin.so", macros...)
}

// quiet fails the test if f writes to standard error, as libraries may do.
func quiet(t *testing.T, f func()) {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	kept, err := syscall.Dup(2)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(kept)
	if err := syscall.Dup3(int(file.Fd()), 2, 0); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := syscall.Dup3(kept, 2, 0); err != nil {
			t.Fatal(err)
		}
		if text, err := os.ReadFile(file.Name()); err != nil || len(text) > 0 {
			t.Errorf("standard error has %q, %v", text, err)
		}
	}()
	f()
}

// The error of a broken plugin says what is wrong and names the file.
func TestBrokenPlugins(t *testing.T) {
	whole, err := os.ReadFile(plugin(t))
	if err != nil {
		t.Fatal(err)
	}
	written := func(data []byte) string {
		path := filepath.Join(t.TempDir(), "plugin.so")
		if err := os.WriteFile(path, data, 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	foreign := append([]byte(nil), whole...)
	foreign[18], foreign[19] = 0xf3, 0 // RISC-V
	for _, c := range []struct {
		name, path string
		says       []string
	}{
		{"no library", written([]byte("#!/bin/sh\n")), []string{"not a shared library"}},
		{"an empty file", written(nil), []string{"not a shared library"}},
		{"cut off", written(whole[:len(whole)/3]), []string{"damaged"}},
		{"of another machine", written(foreign), []string{"another processor"}},
		{"another library", standIn(t, "../../../internal/libraries/testdata/driver.c", "libother.so", "-DGPUS=1"),
			[]string{"not a PJRT plugin", "GetPjrtApi"}},
		{"a library is missing", needy(t), []string{"needs the library libneeded.so"}},
		{"no table", plugin(t, "NOTHING"), []string{"returns no function table"}},
		{"too old", plugin(t, "MINOR=60"), []string{"0.60", "headers of 0.104", "from 0.81 on"}},
		{"another interface", plugin(t, "MAJOR=1"), []string{"version 1."}},
		{"does not start", plugin(t, `START="no such thing"`), []string{"does not start", "no such thing"}},
		{"out of memory", plugin(t, `CREATE="Out of memory allocating 7 bytes."`, "CODE=8"),
			[]string{"too little free memory", "7 bytes"}},
		{"does not open", plugin(t, `CREATE="device is lost"`), []string{"device is lost"}},
		{"of another device", plugin(t, `PLATFORM="cuda"`), []string{"a plugin for cuda"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			quiet(t, func() {
				_, err := FirstDevice(CPU, c.path)
				if err == nil {
					t.Fatal("it opened")
				}
				for _, want := range append(c.says, c.path) {
					if !strings.Contains(err.Error(), want) {
						t.Errorf("%q is not in: %v", want, err)
					}
				}
			})
		})
	}
}

// needy returns a plugin that needs a library which is gone.
func needy(t *testing.T) string {
	t.Helper()
	needed := standIn(t, "../../../internal/libraries/testdata/driver.c", "libneeded.so", "-DGPUS=1",
		"-Wl,-soname,libneeded.so")
	path := standIn(t, "testdata/plugin.c", "plugin.so", "-Wl,--no-as-needed", needed)
	if err := os.Remove(needed); err != nil {
		t.Fatal(err)
	}
	return path
}

// A plugin with a newer version than the tested ones opens with a remark, and so does one with
// only the required functions.
func TestStandInOpens(t *testing.T) {
	for _, c := range []struct{ macro, says string }{
		{"MINOR=81", "CPU (PJRT 0.81, "}, {"MINOR=116", "CPU (PJRT 0.116, "}, {"MINOR=140", "PJRT 0.140, newer than 0.116"},
	} {
		path := plugin(t, c.macro)
		quiet(t, func() {
			d, err := FirstDevice(CPU, path)
			if err != nil {
				t.Fatal(err)
			}
			d.Finalize()
			if !strings.Contains(d.Text, c.says) || !strings.Contains(d.Text, path) {
				t.Errorf("%s opens %q", c.macro, d.Text)
			}
		})
	}
}

// The version in error messages is that of the headers.
func TestHeadersVersion(t *testing.T) {
	dir, err := headers()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "pjrt_c_api.h"))
	if err != nil || !strings.Contains(string(text), fmt.Sprintf("#define PJRT_API_MINOR %d\n", headersMinor)) {
		t.Errorf("the headers are not of version 0.%d: %v", headersMinor, err)
	}
}

// The messages of FirstDevice with a driver, in a separate process, because the loader reads its search
// path when a process starts.
func TestDrivers(t *testing.T) {
	if path := os.Getenv("STAND_IN_PLUGIN"); path != "" {
		d, err := FirstDevice(CUDA, path)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(d.Text, d.Memory)
		d.Finalize()
		return
	}
	gpu := plugin(t, `PLATFORM="cuda"`)
	for _, c := range []struct {
		name   string
		driver []string
		plugin string
		says   string
	}{
		{"a driver that does not start", []string{"GPUS=1", "START=100"}, gpu, "does not start (code 100"},
		{"no GPU", []string{"GPUS=0"}, gpu, "sees no GPU"},
		{"one GPU", []string{"GPUS=1"}, gpu, "Stand-in GPU (PJRT 0.104, " + gpu + ") {7.5e+09 three quarters"},
		{"one GPU of two", []string{"GPUS=2"}, gpu, "Stand-in GPU, the first of 2 (PJRT"},
		{"a plugin for CPUs", []string{"GPUS=1"}, plugin(t), "it is not a plugin for cuda"},
		{"a plugin that is gone", []string{"GPUS=1"}, gpu + "x", "a GPU is here (Stand-in GPU), but"},
		{"memory that is taken", []string{"GPUS=1"}, plugin(t, `PLATFORM="cuda"`, `CREATE="RESOURCE_EXHAUSTED"`, "CODE=8"),
			"too little free memory"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for i, m := range c.driver {
				c.driver[i] = "-D" + m
			}
			driver := standIn(t, "../../../internal/libraries/testdata/driver.c", "libcuda.so.1", c.driver...)
			cmd := exec.Command(os.Args[0], "-test.run=^TestDrivers$", "-test.count=1")
			cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+filepath.Dir(driver), "STAND_IN_PLUGIN="+c.plugin)
			var stderr strings.Builder
			cmd.Stderr = &stderr
			out, err := cmd.Output()
			if err != nil || !strings.Contains(string(out), c.says) || stderr.Len() > 0 {
				t.Errorf("want %q, got %s%v, standard error %q", c.says, out, err, stderr.String())
			}
		})
	}
}
