// Every shipped spec that is trained has a search, whose settings are valid; errors are at their place.

package language

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/specs"
)

func TestShippedSearches(t *testing.T) {
	for _, name := range specs.Models() {
		spec, err := Load(name, "search.trials=9")
		if err != nil {
			t.Fatal(err)
		}
		if spec.Fitted() {
			continue
		}
		list, settings, err := spec.TrialSpecs()
		if err != nil || len(list) != 9 || len(settings) != 9 || settings[0] != nil || list[0] != spec {
			t.Errorf("%s: %d trials, %v", name, len(list), err)
		}
	}
}

// A search does not change the identity of a spec, and is not part of a complete spec.
func TestSearchIsNoSetting(t *testing.T) {
	one, err := Load("demipl", "search.trials=5", "search.grid.train.momentum={uniform: [0, 0.9]}")
	if err != nil {
		t.Fatal(err)
	}
	other, err := Load("demipl")
	if err != nil {
		t.Fatal(err)
	}
	if one.Identity() != other.Identity() || strings.Contains(string(one.YAML()), "search") {
		t.Error("the search is part of the spec")
	}
	if list, _, err := one.TrialSpecs(); err != nil || len(list) != 5 || len(one.Search.Grid) != 3 {
		t.Errorf("%d trials, %+v, %v", len(list), one.Search.Grid, err)
	}
}

func TestWrongSearches(t *testing.T) {
	t.Chdir(t.TempDir())
	const spec = "name: s\nextends: demipl\nsearch:\n  "
	for text, want := range map[string]string{
		"grid: {train.lr: {log: [0, 0.1]}}": "s.yaml:4:27: train.lr: a logarithmic range needs numbers above 0, " +
			"not 0",
		"grid: {train.rate: {log: [0.1, 0.2]}}": "s.yaml:4:16: search.grid: unknown key \"rate\" in train",
		"grid: {train.lr: {log: [-2, -1]}}": "s.yaml:4:27: train.lr: a logarithmic range needs numbers above 0, " +
			"not -2",
		"grid: {train.momentum: {uniform: [2, 3]}}": "s.yaml:4:37: search.grid: train.momentum must be between 0 and 1 (1 " +
			"excluded)",
		"grid: {data.split.seed: {int: [1, 3]}}":     "s.yaml:4:10: data.split.seed is not a setting that a search can vary",
		"{grid: {train.lr: [0.1]}, measure: f1}":     "s.yaml:4:38: search.measure cannot be \"f1\"",
		"{grid: {train.lr: [0.1]}, halving: 0}":      "s.yaml:4:38: search.halving must be between 1 and 10, not 0",
		"{grid: {train.lr: [0.1]}, folds: 1}":        "s.yaml:4:36: search.folds must be between 2 and 1000, not 1",
		"{folds: 5, holdout: 0.3}":                   "s.yaml:4:23: search.holdout has no effect with folds",
		"{grid: {train.lr: [0.1]}, validation: 0.2}": "s.yaml:4:29: unknown key \"validation\" in search",
	} {
		if err := os.WriteFile("s.yaml", []byte(spec+text+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		s, err := Load("s.yaml")
		if err == nil {
			_, _, err = s.TrialSpecs()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	s, err := Parse("s.yaml", []byte("name: s\nmodel: {blocks: [attention: {kind: disambiguation}, pool: attention, "+
		"classifier: softmax]}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.TrialSpecs(); err == nil ||
		!strings.Contains(err.Error(), "s.yaml:1:1: s has no settings to search") {
		t.Errorf("%v", err)
	}
}

// All mistakes of a grid are reported together, each at its place: unknown keys and entries of lists, values and
// ranges.
func TestAllErrorsOfGrid(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("s.yaml", []byte("name: s\nextends: demipl\nsearch:\n  grid:\n    train.ler: {log: [0, 1]}\n"+
		"    train.lr: {log: [0, 1]}\n    loss.atention: [0, 1]\n    train.momentum: {uniform: [0.5, 2]}\n"+
		"    train.batch: [1, 0, 2]\n    dat.shape: null\n    loss.attention: [0.1, x]\n"+
		"    train.optimizer: [adam, adm]\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	_, err := Load("s.yaml")
	var places []string
	list, _ := diag.ListOf(err)
	for _, d := range list {
		places = append(places, fmt.Sprintf("%d:%d %s", d.Pos.Line, d.Pos.Col, d.Text))
	}
	want := []string{
		"5:11 search.grid: unknown key \"ler\" in train",
		"5:23 train.ler: a logarithmic range needs numbers above 0, not 0",
		"6:22 train.lr: a logarithmic range needs numbers above 0, not 0",
		"7:21 search.grid: the list has no atention, only disambiguation, attention",
		"8:37 search.grid: train.momentum must be between 0 and 1 (1 excluded), not 2",
		"9:22 search.grid: train.batch must be between 1 and 1000000, not 0",
		"10:5 search.grid: unknown key \"dat\" at the top level",
		"11:27 search.grid: attention.weight must be a number, not the text \"x\"",
		"12:29 search.grid: train.optimizer cannot be \"adm\"",
	}
	if !slices.Equal(places, want) {
		t.Errorf("errors:\n%s\nwant:\n%s", strings.Join(places, "\n"), strings.Join(want, "\n"))
	}
}

// A range replaces an inherited range or list of the same setting whole, in a file and with --set.
func TestReplacedRange(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("s.yaml", []byte("name: s\nextends: demipl-mlp\nsearch:\n  grid:\n    train.lr: {uniform: "+
		"[0.01, 0.02]}\n    model.blocks.dropout: [0.1]\n    model.blocks.dense: {int: [5, 9]}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for set, want := range map[string]string{
		"": "train.lr uniform 0.01 0.02, train.weight_decay log 1e-05 0.01, loss.attention log 0.0001 0.1, " +
			"model.blocks.dropout [0.1], model.blocks.dense int 5 9",
		"search.grid.train.lr={log: [0.1, 0.3]}": "train.lr log 0.1 0.3, train.weight_decay log 1e-05 0.01, loss.attention " +
			"log 0.0001 0.1, model.blocks.dropout [0.1], model.blocks.dense int 5 9",
		"search.grid={train.weight_decay: {uniform: [0, 1]}, loss.attention: null}": "train.lr uniform 0.01 0.02, " +
			"train.weight_decay uniform 0 1, model.blocks.dropout [0.1], model.blocks.dense int 5 9",
	} {
		var overrides []string
		if set != "" {
			overrides = []string{set}
		}
		s, err := Load("s.yaml", overrides...)
		if err != nil {
			t.Fatal(err)
		}
		var list []string
		for _, a := range s.Search.Grid {
			text := a.Key
			if a.Range != nil {
				text += fmt.Sprintf(" %s %v %v", a.Range.Form, a.Range.Low, a.Range.High)
			} else {
				for _, v := range a.Values {
					text += fmt.Sprintf(" [%s]", v.Value)
				}
			}
			list = append(list, text)
		}
		if got := strings.Join(list, ", "); got != want {
			t.Errorf("%q: %s\nwant %s", set, got, want)
		}
	}
}

// A held-out share replaces folds that are inherited, and folds replace a share.
func TestInheritedFolds(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{"folds": "{folds: 5}", "holdout": "{holdout: 0.3}"} {
		text = "name: " + name + "\nextends: demipl\nsearch: " + text + "\n"
		if err := os.WriteFile(name+".yaml", []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		file    string
		set     []string
		folds   int
		holdout float64
	}{
		{"demipl", nil, 0, 0.2},
		{"folds.yaml", nil, 5, 0.2},
		{"folds.yaml", []string{"search.holdout=0.1"}, 0, 0.1},
		{"holdout.yaml", []string{"search.folds=4"}, 4, 0.3},
	} {
		s, err := Load(c.file, c.set...)
		if err != nil || s.Search.Folds.V != c.folds || s.Search.Holdout.V != c.holdout {
			t.Errorf("%s %v: %v, search %+v", c.file, c.set, err, s.Search)
		}
	}
	if _, err := Load("demipl", "search.folds=4", "search.holdout=0.1"); err == nil ||
		!strings.Contains(err.Error(), "search.holdout has no effect with folds") {
		t.Errorf("both: %v", err)
	}
}

// An inherited setting that does not fit the model is an error of the search, and can be removed.
func TestInheritedSearch(t *testing.T) {
	t.Chdir(t.TempDir())
	const spec = "name: s\nextends: demipl-mlp\nloss: [disambiguation]\n"
	load := func(text string) ([]*Spec, error) {
		if err := os.WriteFile("s.yaml", []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		s, err := Load("s.yaml")
		if err != nil {
			t.Fatal(err)
		}
		if err := s.CheckSearch(); err != nil {
			t.Errorf("the spec is valid: %v", err)
		}
		list, _, err := s.TrialSpecs()
		return list, err
	}
	_, err := load(spec)
	var out strings.Builder
	diag.Render(&out, err)
	if !strings.Contains(out.String(), "search.grid: the list has no attention, only disambiguation") ||
		!strings.Contains(out.String(), "search: {grid: {loss.attention: null}} in the spec removes this") {
		t.Errorf("%s", out.String())
	}
	if list, err := load(spec + "search: {grid: {loss.attention: }, trials: 5}\n"); err != nil || len(list) != 5 {
		t.Errorf("%d trials, %v", len(list), err)
	}
}
