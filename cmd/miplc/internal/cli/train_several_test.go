// Tests of the options of miplc train that start several runs.

package cli

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/miplc/miplc/runs"
)

func TestSplitValues(t *testing.T) {
	for _, test := range []struct {
		text string
		want []string
	}{
		{"0.01,0.05", []string{"0.01", "0.05"}},
		{"train.lr=0.1,train.betas=[0.9, 0.99]", []string{"train.lr=0.1", "train.betas=[0.9, 0.99]"}},
		{`data.set="a, b [1.csv",train.lr=1`, []string{`data.set="a, b [1.csv"`, "train.lr=1"}},
		{`data.set="a\",b",train.lr=1`, []string{`data.set="a\",b"`, "train.lr=1"}},
		{`"a,b.csv",c.csv`, []string{`"a,b.csv"`, "c.csv"}},
		{`x={a: 'b,c'},y=1`, []string{`x={a: 'b,c'}`, "y=1"}},
		{"x=don't,y=isn't", []string{"x=don't", "y=isn't"}},
	} {
		if got := splitValues(test.text); !slices.Equal(got, test.want) {
			t.Errorf("splitValues(%s) = %q, want %q", test.text, got, test.want)
		}
	}
}

// Runs with other seeds and splits are of one setting, whatever the folders are called: a number of the model that has
// the name fold is a setting.
func TestSettingsOfRuns(t *testing.T) {
	file := filepath.Join(t.TempDir(), "mine.yaml")
	src := "name: x\nmodel:\n  numbers: {fold: 2}\n  blocks: [pool: mean, classifier]\nloss:\n" +
		"  - equation: {name: spread, value: \"fold * mean(p)\"}\n"
	if err := os.WriteFile(file, []byte(src), 0o600); err != nil {
		t.Fatal(err)
	}
	o := &trainOptions{Spec: file, Seeds: []uint{1, 2}, Grid: []string{"model.numbers.fold=3,4", "data.split.seed=5,6"}}
	_, err := o.combinations()
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []runs.RunName{{Name: "seed-1-fold-3-seed-5", Setting: "fold-3"},
		{Name: "seed-1-fold-3-seed-6", Setting: "fold-3"}, {Name: "seed-1-fold-4-seed-5", Setting: "fold-4"}} {
		if o.names[i] != want {
			t.Errorf("run %d: %+v, want %+v", i, o.names[i], want)
		}
	}
}
