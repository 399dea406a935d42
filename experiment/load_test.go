// Files of experiments are read with all their errors at once, and the shipped ones refer to what exists.

package experiment

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/miplc/miplc/experiment/definition"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/testkit/testsupport"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/specs"
)

// shippedSpecs matches a note whose list grows with every new spec.
var shippedSpecs = regexp.MustCompile(`(?m)(shipped specs:).*$`)

// All errors of an invalid file are reported with their positions.
func TestBadFiles(t *testing.T) {
	files, err := filepath.Glob("testdata/bad/*.yaml")
	if err != nil || len(files) < 14 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		e, err := Load(filepath.ToSlash(file))
		if err == nil {
			_, err = loadSpecs(e)
		}
		if err == nil {
			t.Errorf("%s was accepted", file)
			continue
		}
		var out strings.Builder
		diag.Render(&out, err)
		got := shippedSpecs.ReplaceAllString(out.String(), "$1 ...")
		testsupport.CheckGolden(t, strings.TrimSuffix(file, ".yaml")+".out", got)
	}
}

// The shipped experiments refer to specs and settings that exist.
func TestShippedExperiments(t *testing.T) {
	for _, name := range specs.Experiments() {
		e, err := definition.Load(name)
		if err != nil {
			t.Errorf("%s:\n%v", name, err)
			continue
		}
		if _, err := loadSpecs(e); err != nil {
			t.Errorf("%s:\n%v", name, err)
		}
		if e.Name.V != name || e.Description.V == "" || len(e.Report) == 0 {
			t.Errorf("%s: name %q, description %q, %d parts of a report", name, e.Name.V, e.Description.V, len(e.Report))
		}
	}
	if _, err := definition.Load("smok"); err == nil || !strings.Contains(err.Error(), `did you mean "smoke"?`) {
		t.Errorf("smok: %v", err)
	}
}

const small = `
name: small
reference: b
r: [2, 3]
data:
  - {name: A, synth: prototypes}
  - {name: B, file: "b-{r}.npz", r: 1, splits: {count: 2, index: "b{split}.mat"}}
  - {name: C, file: c.npz}
learners:
  - name: a
    title: Alpha
    spec: demipl
    set: {train.epochs: 3, loss: [disambiguation]}
    grid: {train.lr: [0.1, 0.2], train.momentum: [0, 0.9]}
    cases:
      - {data: B, spec: demipl-pr}
      - {r: 3, set: {train.epochs: 4}, grid: {train.lr: [0.3]}}
  - {name: b, spec: demipl, vary: {loss.attention: [0.1, 0.2]}, data: [A, B], r: 2}
`

// Load reads defaults, cases, grids and variants.
func TestRead(t *testing.T) {
	e, err := definition.Parse("small.yaml", []byte(small))
	if err != nil {
		t.Fatal(err)
	}
	if e.Splits.Count.V != 10 || e.Splits.Train.V != 0.7 || e.Splits.Seed.V != 1 || e.Choose.Holdout.V != 0.2 {
		t.Errorf("defaults: %+v, %+v", e.Splits, e.Choose)
	}
	if a, b, c := e.Data[0].R, e.Data[1].R, e.Data[2].R; len(a) != 2 || a[1] != 3 || len(b) != 1 || b[0] != 1 ||
		len(c) != 1 || c[0] != definition.Stored {
		t.Errorf("r: %v %v %v", a, b, c)
	}
	if s := e.SplitsOf(&e.Data[1]); s.Count.V != 2 || s.Index.V != "b{split}.mat" {
		t.Errorf("splits of B: %+v", s)
	}
	a, b := e.Learner("a"), e.Learner("b")
	if a.Title != "Alpha" || b.Title != "b" {
		t.Errorf("titles %q and %q", a.Title, b.Title)
	}
	for _, c := range []struct {
		data string
		r    int
		spec string
		set  string
		grid int
	}{
		{"A", 2, "demipl", "train.epochs=3, loss=[disambiguation]", 4},
		{"A", 3, "demipl", "train.epochs=3, loss=[disambiguation], train.epochs=4", 1},
		{"B", 1, "demipl-pr", "train.epochs=3, loss=[disambiguation]", 4},
	} {
		spec, set := a.SpecOn(c.data, c.r, language.Assignment{})
		grid := a.GridOn(c.data, c.r)
		if spec.V != c.spec || language.DescribeSettings(set) != c.set ||
			len(language.Combinations(language.AxisValues(grid))) != c.grid {
			t.Errorf("a on %s r=%d: %s, %s, %d settings", c.data, c.r, spec.V, language.DescribeSettings(set),
				len(language.Combinations(language.AxisValues(grid))))
		}
	}
	if got := language.DescribeSettings(language.Combinations(language.AxisValues(
		a.Grid))[1]); got != "train.lr=0.1, train.momentum=0.9" {
		t.Errorf("second setting: %s", got)
	}
	if v := b.Variants(); len(v) != 2 || v[1].String() != "loss.attention=0.2" || !b.Has("B", 2) ||
		b.Has("C", 2) || b.Has("A", 3) {
		t.Errorf("variants %v", v)
	}
	loaded, err := loadSpecs(e)
	if err != nil {
		t.Fatal(err)
	}
	at := definition.Coord{Data: "A", R: 3, Learner: "a"}
	if len(loaded[at]) != 1 || loaded[at][0].spec.Train.Epochs.V != 4 || loaded[at][0].spec.Train.LR.V != 0.3 {
		t.Errorf("the case was not applied to the spec: %+v", loaded[at])
	}
	if got := loaded[definition.Coord{Data: "A", R: 2, Learner: "b", Variant: "loss.attention=0.2"}]; len(got) != 1 {
		t.Errorf("variant: %d candidates", len(got))
	}
}
