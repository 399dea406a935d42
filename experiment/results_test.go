// Results of cells: how they are counted, written and read, also after a failure or the removal of their folder.

package experiment

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/miplc/miplc/experiment/definition"
	"github.com/miplc/miplc/runs"
)

// The line of a failed cell has no accuracy, so that nobody averages a 0; that of a cell without
// correct predictions has one.
func TestAccuracyOfFailedCell(t *testing.T) {
	for reason, want := range map[string]bool{"": true, "no memory": false} {
		line, err := json.Marshal(&Result{Key: "k", Error: reason, Assessment: runs.Assessment{Engine: "native"}})
		if err != nil || strings.Contains(string(line), `"accuracy":0`) != want ||
			!strings.Contains(string(line), `"engine":"native"`) {
			t.Errorf("%q: %s, %v", reason, line, err)
		}
	}
}

// A process whose folder was removed reports it, and does not remove the file of a process that has
// started there again.
func TestRemovedFolder(t *testing.T) {
	dir := t.TempDir()
	open := func() *journal {
		j, err := openJournal(dir, "all")
		if err != nil {
			t.Fatal(err)
		}
		return j
	}
	empty, first := open(), open()
	if err := os.RemoveAll(filepath.Join(dir, Folder)); err != nil {
		t.Skipf("open files cannot be removed on this system: %v", err)
	}
	second := open()
	if err := second.Add([]*Result{{Coord: definition.Coord{Data: "P", R: 1, Learner: "a", Split: 1}, Key: "k",
		Accuracy: 1}}); err != nil {
		t.Fatal(err)
	}
	if err := first.Add([]*Result{{Key: "lost"}}); err == nil ||
		!strings.Contains(err.Error(), "was removed while the experiment ran") {
		t.Errorf("error %v", err)
	}
	if err := errors.Join(empty.Close(), second.Close()); err != nil {
		t.Error(err)
	}
	_ = first.Close()
	if have, err := Read(dir); err != nil || len(have.ByKey) != 1 {
		t.Errorf("%v, %v", have, err)
	}
}

// The message of a cell that failed several times is that of the process that wrote last, whatever
// the names of its file and its shard are.
func TestLatestFailure(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, Folder), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, age := range map[string]time.Duration{"1-of-1.a.1": 0, "1-of-2.a.1": time.Minute, "2-of-2.b.1": time.Hour} {
		path := filepath.Join(dir, Folder, name+suffix)
		line := `{"data":"P","r":1,"learner":"a","split":1,"key":"k","error":"` + age.String() + `"}` + "\n"
		if err := os.WriteFile(path, []byte(line), 0o600); err != nil {
			t.Fatal(err)
		}
		at := time.Now().Add(-age)
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	all, err := Read(dir)
	if err != nil || all.ByKey["k"].Error != "0s" {
		t.Errorf("%+v, %v", all, err)
	}
}

func FuzzResults(f *testing.F) {
	f.Add([]byte(`{"data":"P","r":1,"learner":"a","split":1,"key":"k","accuracy":0.5,"seconds":1}` + "\n" + `{"data":"P"`))
	f.Add([]byte("\n\n{}\n"))
	f.Add([]byte(`{"key":"k","data":"P","learner":"a","split":1,"attention":[{"epoch":1,"positive":[1,-1]}]}` + "\nx"))
	f.Fuzz(func(t *testing.T, text []byte) {
		list, whole, err := parseResults("results.jsonl", text)
		if whole < 0 || whole > len(text) {
			t.Fatalf("%d of %d bytes", whole, len(text))
		}
		if err != nil {
			return
		}
		// The accepted part is parsed to the same results completely.
		again, all, err := parseResults("results.jsonl", text[:whole])
		if err != nil || all != whole || len(again) != len(list) {
			t.Fatalf("%d results in %d bytes, again %d in %d, %v", len(list), whole, len(again), all, err)
		}
		for i := range list {
			if err := list[i].valid(); err != nil {
				t.Fatal(err)
			}
		}
	})
}
