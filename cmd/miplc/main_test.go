// Test scripts in testdata/script run miplc as users do, and these are the commands that they can use.

package main

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/miplc/miplc/cmd/miplc/internal/console"
	"github.com/miplc/miplc/internal/libraries"
	"github.com/miplc/miplc/internal/onnxruntime"
	"github.com/miplc/miplc/internal/testkit/enginetest"
	"github.com/miplc/miplc/internal/testkit/testsupport"
)

// programs are the programs that tests can start, by name.
var programs = map[string]func(){"miplc": func() {
	con := console.System()
	con.OpenDevice = enginetest.Open
	os.Exit(run(con))
}}

func TestMain(m *testing.M) { testscript.Main(m, programs) }

// TestScripts runs the commands as a user does. Each script covers one subject.
func TestScripts(t *testing.T) {
	library, toolchain := enginetest.Library(t), goToolchain(t)
	folder, err := filepath.Abs("../../data")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:           "testdata/script",
		UpdateScripts: testsupport.Update(),
		Setup: func(env *testscript.Env) error {
			env.Setenv(onnxruntime.EnvLibrary, library)
			env.Setenv("HDF5", folder+"/hdf5/testdata/groups.h5")
			env.Setenv("SLIDE", folder+"/bagfile/testdata/slide.npz")
			env.Setenv("CASES", folder+"/bagfile/testdata/cases")
			env.Setenv(libraries.EnvCache, env.WorkDir+"/cache")
			env.Vars = append(env.Vars, toolchain...)
			env.Defer(func() { checkFigures(t, env.WorkDir) })
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":   exits,
			"waitfor": waitFor,
			"images":  images,
			"pack":    pack,
			"encoder": encoderFile,
			"cases":   copyCase,
		},
	})
}

// checkFigures checks every figure that the commands of a script drew, including those in HTML pages.
func checkFigures(t *testing.T, dir string) {
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		ending := filepath.Ext(path)
		if err != nil || ending != ".svg" && ending != ".html" {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if !bytes.Contains(content, []byte("<")) { // a file that the script itself wrote
			return nil
		}
		figures := [][]byte{content}
		if ending == ".html" {
			figures = inHTML.FindAll(content, -1)
		}
		for _, figure := range figures {
			if err := testsupport.CheckSVG(figure); err != nil {
				t.Errorf("%s: %v", path, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

var inHTML = regexp.MustCompile(`(?s)<svg.*?</svg>`)

// goToolchain returns the environment in which scripts compile against this module: REPO, and the
// caches of the toolchain, which depend on HOME otherwise.
func goToolchain(t *testing.T) []string {
	repo, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	env := []string{"REPO=" + repo}
	for _, name := range []string{"GOCACHE", "GOFLAGS", "GOMODCACHE", "GOPROXY"} {
		value, err := exec.Command("go", "env", name).Output()
		if err != nil {
			t.Fatal(err)
		}
		env = append(env, name+"="+strings.TrimSpace(string(value)))
	}
	return env
}

// copyCase copies the files of testdata/cases/NAME into the working directory.
func copyCase(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(os.CopyFS(ts.Getenv("WORK"), os.DirFS(filepath.Join(ts.Getenv("REPO"), "cmd/miplc/testdata/cases", args[0]))))
}

// exits CODE COMMAND... runs a command that must exit with the given code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND...")
	}
	want, err := strconv.Atoi(args[0])
	if err != nil {
		ts.Fatalf("%v", err)
	}
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// waitFor FILE waits until a background command has written the file, or a file that matches the
// pattern.
func waitFor(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: waitfor FILE")
	}
	path := ts.MkAbs(args[0])
	for range 6000 {
		if found, err := filepath.Glob(path); err != nil || len(found) > 0 {
			ts.Check(err)
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	ts.Fatalf("%s did not appear within a minute", args[0])
}
