// Published results grow by new cells in the order of the experiment, and are never changed silently.

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	oldLine   = `{"data": "D", "r": 1, "learner": "pl-aggd-mean", "split": 2, "accuracy": 0.5, "engine": "pl-aggd"}` + "\n"
	newResult = `{"data":"D","r":1,"learner":"pl-aggd-mean","split":1,"key":"a","accuracy":0.75,"engine":"pl-aggd",` +
		`"seconds":2,"environment":{"commit":"c0ffee","go":"go1.26","os":"linux","arch":"amd64","cores":1}}` + "\n"
)

// New cells are added in the order of the experiment. Cells that differ from their line, and cells of
// an unknown commit, are reported and leave the lines as they are.
func TestAdd(t *testing.T) {
	for _, c := range []struct{ name, result, wantError, want string }{
		{"new", newResult, "", `{"data":"D","r":1,"learner":"pl-aggd-mean","split":1,"accuracy":0.75,"engine":"pl-aggd",` +
			`"seconds":2,"environment":{"commit":"c0ffee","go":"go1.26","os":"linux","arch":"amd64","cores":1}}` + "\n" +
			oldLine},
		{"equal", strings.NewReplacer(`"split":1`, `"split":2`, "0.75", "0.5").Replace(newResult), "", oldLine},
		{"different", strings.ReplaceAll(newResult, `"split":1`, `"split":2`),
			"accuracy 0.75 with engine pl-aggd, commit c0ffee", oldLine},
		{"unknown commit", strings.Replace(newResult, `"commit":"c0ffee",`, "", 1), "unknown commit", oldLine},
		{"modified", strings.Replace(newResult, `"c0ffee",`, `"c0ffee","modified":true,`, 1), "unknown commit", oldLine},
	} {
		dir := t.TempDir()
		base := filepath.Join(dir, "e")
		for path, text := range map[string]string{
			base + ".yaml": "name: e\ndescription: one learner\nr: 1\ndata: [{name: D, synth: prototypes}]\nsplits: {count: " +
				"2}\nlearners: [{name: pl-aggd-mean, spec: pl-aggd-mean}]\n",
			base + ".jsonl": oldLine,
			filepath.Join(dir, "run", "results", "1.jsonl"): c.result,
		} {
			if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		switch err := add(base, filepath.Join(dir, "run")); {
		case (err == nil) != (c.wantError == ""), err != nil && !strings.Contains(err.Error(), c.wantError):
			t.Errorf("%s: %v, want %q", c.name, err, c.wantError)
		}
		if got, err := os.ReadFile(base + ".jsonl"); err != nil || string(got) != c.want {
			t.Errorf("%s: lines %s%v, want %s", c.name, got, err, c.want)
		}
	}
}
