// Results of experiments of earlier versions remain valid.

package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/miplc/miplc/experiment"
	"github.com/miplc/miplc/internal/testkit/testsupport"
)

// A folder of results that an earlier version wrote has a report, none of its cells runs again, and no field of them
// is lost.
func TestPromisedResults(t *testing.T) {
	folders, err := filepath.Glob(testsupport.PromisesFolder(t) + "/*/experiment")
	if err != nil || len(folders) == 0 {
		t.Fatalf("no folder of results: %v", err)
	}
	for _, folder := range folders {
		dir := filepath.Join(t.TempDir(), "results")
		if err := os.CopyFS(dir, os.DirFS(folder)); err != nil {
			t.Fatal(err)
		}
		for _, command := range [][]string{
			{"6 of 6 cells were done before", "experiment", filepath.Join(dir, "experiment.yaml"), "-o", dir},
			{"6 of 6 cells", "report", dir},
		} {
			out, err := exec.Command("miplc", command[1:]...).CombinedOutput()
			if err != nil || !strings.Contains(string(out), command[0]) {
				t.Errorf("miplc %q with results of an earlier version: %v\n%s", command[1:], err, out)
			}
		}
		knowsFields(t, filepath.Join(folder, "results"))
	}
}

// knowsFields checks that experiment.Result has all fields of the results in a folder.
func knowsFields(t *testing.T, folder string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.jsonl"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no results in %s: %v", folder, err)
	}
	for _, file := range files {
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		lines := json.NewDecoder(f)
		lines.DisallowUnknownFields()
		for lines.More() {
			if err := lines.Decode(&experiment.Result{}); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
		}
	}
}
