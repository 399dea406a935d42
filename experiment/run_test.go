// Experiments give the same results however they are interrupted, repeated, selected or parallelised.

package experiment

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/data/bagfile"
	"github.com/miplc/miplc/data/generate"
	"github.com/miplc/miplc/experiment/definition"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/fileio"
	"github.com/miplc/miplc/internal/testkit/enginetest"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/language/schema"
	"github.com/miplc/miplc/runs"
	"github.com/miplc/miplc/runs/prepare"
	"github.com/miplc/miplc/train"
	"github.com/miplc/miplc/train/engines"
)

// tiny runs in well under a second: 2 values of r, 2 learners and 2 splits.
const tiny = `
name: tiny
data:
  - {name: P, synth: {set: prototypes, bags: 20, features: 4, min_size: 2, max_size: 3}, r: [1, 2]}
learners:
  - {name: demipl, spec: demipl, set: {train.epochs: 2, train.engine: gorgonia}}
  - {name: md, spec: demipl-md, set: {train.epochs: 2, train.engine: gorgonia}}
splits: {count: 2}
attention: {epochs: [1, 2]}
`

func parse(t *testing.T, text string) *definition.Experiment {
	t.Helper()
	e, err := definition.Parse("test.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// watch counts the cells that ran.
type watch struct {
	mu    sync.Mutex
	ran   []definition.Coord
	note  []string
	warn  []string
	begin Progress
	last  Progress
	left  []time.Duration // after each epoch
	after int             // number of cells after which stop is called
	stop  func()
}

func (w *watch) Begin(p Progress) { w.begin = p }
func (w *watch) Epoch(p Progress) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last, w.left = p, append(w.left, p.Left)
}
func (w *watch) Note(text string) { w.note = append(w.note, text) }
func (w *watch) Warn(text string) { w.warn = append(w.warn, text) }
func (w *watch) Cell(r Result, _ Progress) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ran = append(w.ran, r.Coord); len(w.ran) == w.after {
		w.stop()
	}
}

// run runs an experiment and returns its results by key, without times.
func run(t *testing.T, e *definition.Experiment, o Work) (map[string]string, *watch, error) {
	t.Helper()
	w := &watch{}
	o.Observer = w
	_, err := Run(context.Background(), e, o)
	return read(t, o.Dir), w, err
}

func read(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, r := range accuracies(t, dir) {
		out[r.Key] = r.Substance()
	}
	return out
}

// accuracies lists the merged results of a folder.
func accuracies(t *testing.T, dir string) []Result {
	t.Helper()
	merged, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	return slices.Collect(maps.Values(merged.ByKey))
}

// The cells of bags with two names are computed once.
func TestTwoNames(t *testing.T) {
	e := parse(t, `
name: names
data:
  - {name: first, synth: {set: prototypes, bags: 20, features: 4, min_size: 2, max_size: 3}, r: [1]}
  - {name: second, synth: {set: prototypes, bags: 20, features: 4, min_size: 2, max_size: 3}, r: [1]}
learners:
  - {name: demipl, spec: demipl, set: {train.epochs: 2, train.engine: gorgonia}}
splits: {count: 2}
`)
	dir := t.TempDir()
	list, w, err := run(t, e, Work{Dir: dir})
	if err != nil || len(list) != 2 || len(w.ran) != 2 || w.begin.Cells != 2 {
		t.Errorf("%d results, %d cells ran of %d, %v", len(list), len(w.ran), w.begin.Cells, err)
	}
	if s, err := ReadStatus(dir, time.Now()); err != nil || len(s.Differ) > 0 {
		t.Errorf("%+v, %v", s, err)
	}
}

// The results do not depend on the number of parallel cells, and no finished cell runs again.
func TestRunTwice(t *testing.T) {
	e := parse(t, tiny)
	one, w, err := run(t, e, Work{Dir: t.TempDir(), Parallel: 1})
	if err != nil || len(one) != 8 || len(w.ran) != 8 {
		t.Fatalf("%d results, %d cells ran, %v", len(one), len(w.ran), err)
	}
	dir := t.TempDir()
	three, _, err := run(t, e, Work{Dir: dir, Parallel: 3})
	if err != nil || !maps.Equal(one, three) {
		t.Errorf("three at a time: %v\n%v\n%v", err, one, three)
	}
	again, w, err := run(t, e, Work{Dir: dir})
	if err != nil || len(w.ran) != 0 || w.begin.Before != 8 || !maps.Equal(one, again) {
		t.Errorf("again: %d cells ran, %+v, %v", len(w.ran), w.begin, err)
	}
}

// An experiment that continues with another engine, as on another machine, warns.
func TestRunWithAnotherEngine(t *testing.T) {
	e, dir := parse(t, tiny), t.TempDir()
	first := Work{Dir: dir, Select: Selection{Splits: 1}}
	first.Place.Engine = engines.Gorgonia
	if _, w, err := run(t, e, first); err != nil || len(w.warn) > 0 {
		t.Fatal(w.warn, err)
	}
	rest := Work{Dir: dir}
	enginetest.Library(t)
	rest.Place.Engine = engines.Native
	_, w, err := run(t, e, rest)
	if err != nil || len(w.warn) == 0 || !strings.Contains(w.warn[0],
		"computed with engine gorgonia, the others will be with native") {
		t.Errorf("warned %q, %v", w.warn, err)
	}
	learners := map[string]bool{}
	for _, c := range w.ran {
		learners[c.Learner] = true
	}
	if len(w.warn) > len(learners) {
		t.Errorf("%d warnings for %d learners: %q", len(w.warn), len(learners), w.warn)
	}
	results, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results.ByKey { // cells share the cores: each trains on one thread, which the result says
		want := map[string]int{engines.Native: 1}[r.Engine]
		if r.Environment.Threads != want {
			t.Errorf("%s with %s: %d threads, want %d", r.Coord, r.Engine, r.Environment.Threads, want)
		}
	}
	changed := parse(t, strings.ReplaceAll(tiny, "train.epochs: 2", "train.epochs: 3")) // no finished cell is of this plan
	if _, w, err := run(t, changed, first); err != nil || len(w.warn) > 0 {
		t.Errorf("warned %q, %v", w.warn, err)
	}
}

// The engine of a cell is not part of its key, whether a flag or the spec names it: an experiment continues with
// another one, and learners that differ only by it are the same learner.
func TestEngineIsNotPartOfKeys(t *testing.T) {
	dir := t.TempDir()
	if _, _, err := run(t, parse(t, tiny), Work{Dir: dir}); err != nil {
		t.Fatal(err)
	}
	auto := parse(t, strings.ReplaceAll(tiny, ", train.engine: gorgonia", ""))
	if _, w, err := run(t, auto, Work{Dir: dir}); err != nil || len(w.ran) > 0 {
		t.Errorf("%d cells ran again, %v", len(w.ran), err)
	}
	engine, twin := ", train.engine: gorgonia}}", "  - {name: twin, spec: demipl, set: {train.epochs: 2}}\nsplits:"
	for text, want := range map[string]string{
		strings.Replace(tiny, "splits:", twin, 1): "equal settings: their " +
			"results would be the same",
		strings.Replace(tiny, engine, "}, grid: {train.engine: [native, gorgonia]}}", 1): "the grid has equal settings",
		strings.Replace(tiny, engine, "}, vary: {train.engine: [native, gorgonia]}}", 1): "are equal settings",
	} {
		if _, _, err := run(t, parse(t, text), Work{Dir: t.TempDir()}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\n%v, want %q", text, err, want)
		}
	}
}

// If a process is killed after it wrote the result of a cell and before it removed the checkpoints,
// the next start removes them.
func TestLeftCheckpoints(t *testing.T) {
	e, dir := parse(t, tiny), t.TempDir()
	if _, _, err := run(t, e, Work{Dir: dir}); err != nil {
		t.Fatal(err)
	}
	left := filepath.Join(dir, TrialsFolder, accuracies(t, dir)[0].Key[:16], "gorgonia")
	if err := os.MkdirAll(left, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, _, err := run(t, e, Work{Dir: dir}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, TrialsFolder)); !os.IsNotExist(err) {
		t.Errorf("%s is left: %v", left, err)
	}
}

// A cell has the accuracy of an ordinary training run with the same settings.
func TestCellIsAnOrdinaryRun(t *testing.T) {
	e := parse(t, tiny)
	dir := t.TempDir()
	if _, _, err := run(t, e, Work{Dir: dir}); err != nil {
		t.Fatal(err)
	}
	list := accuracies(t, dir)
	sets, err := filepath.Glob(filepath.Join(dir, DataFolder, "P-r2-*.npz"))
	if err != nil || len(sets) != 1 {
		t.Fatalf("%v, %v", sets, err)
	}
	spec, err := language.Load("demipl",
		"train.epochs=2", "train.engine=gorgonia", "data.set="+sets[0], "data.split.seed=2")
	if err != nil {
		t.Fatal(err)
	}
	trials, err := prepare.Trials([]*language.Spec{spec}, bagfile.Folder{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	trainers := engines.NewTrainers(engines.Place{})
	defer trainers.Close()
	trials[0].Snapshots = []int{1}
	report, err := train.TrainOne(context.Background(), trainers, trials[0], train.Options{})
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(list, func(r Result) bool {
		return r.Coord == definition.Coord{Data: "P", R: 2, Learner: "demipl", Split: 2}
	})
	if i < 0 || list[i].Accuracy != *report.Measures.Accuracy("test") ||
		*list[i].Disambiguation != *report.Disambiguation {
		t.Fatalf("cell %+v, run %v", list[i], *report.Measures.Accuracy("test"))
	}
	if e := list[i].Environment; e == nil || e.Go != runtime.Version() || e.Cores < 1 {
		t.Errorf("environment %+v", e)
	}
	if h := list[i].Attention; len(h) != 2 || h[0].Epoch != 1 || h[1].Epoch != 2 {
		t.Errorf("histograms %+v", h)
	}
	n := 0
	for _, v := range append(slices.Clone(list[i].Attention[1].Positive), list[i].Attention[1].Negative...) {
		n += v
	}
	s := report.Attention[len(report.Attention)-1].Test
	if n != len(s.Positive)+len(s.Negative) {
		t.Errorf("%d scores counted of %d", n, len(s.Positive)+len(s.Negative))
	}
}

// An interrupted experiment continues with the remaining cells.
func TestInterrupted(t *testing.T) {
	e := parse(t, tiny)
	whole, _, err := run(t, e, Work{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(context.Background())
	_, err = Run(ctx, e, Work{Dir: dir, Parallel: 2, Observer: &watch{after: 3, stop: cancel}})
	var stopped *InterruptedError
	if !errors.As(err, &stopped) || stopped.Progress.Done < 3 || stopped.Progress.Done > 4 {
		t.Fatalf("%v", err)
	}
	broken, w, err := run(t, e, Work{Dir: dir})
	if err != nil || len(w.ran) != 8-stopped.Progress.Done || !maps.Equal(whole, broken) {
		t.Errorf("%d cells ran after %d, %v", len(w.ran), stopped.Progress.Done, err)
	}
}

// A torn last line is dropped, and its cell runs again, into another file.
func TestTornResults(t *testing.T) {
	e := parse(t, tiny)
	dir := t.TempDir()
	whole, _, err := run(t, e, Work{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, Folder, "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v, %v", files, err)
	}
	path := files[0]
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	put := func(text []byte) {
		if err := errors.Join(os.RemoveAll(filepath.Dir(path)), os.Mkdir(filepath.Dir(path), 0o755), os.WriteFile(path, text,
			0o644)); err != nil {
			t.Fatal(err)
		}
	}
	torn := map[string][]byte{
		"half a line":  text[:len(text)-40],
		"no newline":   text[:len(text)-1],
		"zeros at end": append(slices.Clone(text[:len(text)-40]), make([]byte, 40)...),
	}
	for name, part := range torn {
		put(part)
		again, w, err := run(t, e, Work{Dir: dir})
		if err != nil || len(w.ran) != 1 || !maps.Equal(whole, again) {
			t.Errorf("%s: %d cells ran, %v", name, len(w.ran), err)
		}
	}
	lines := strings.SplitAfter(string(text), "\n")
	lines[2] = "{\"key\": oops}\n"
	put([]byte(strings.Join(lines, "")))
	_, err = Run(context.Background(), e, Work{Dir: dir})
	var d diag.Diagnostic
	if !errors.As(err, &d) || d.Pos.Line != 3 {
		t.Errorf("a wrong line in the middle: %v", err)
	}
}

// A failed cell is recorded, the others continue, and the next start retries it.
func TestFailingCell(t *testing.T) {
	e := parse(t, strings.Replace(tiny, "spec: demipl-md, set: {", "spec: demipl-md, set: {train.lr: 1e30, ", 1))
	dir := t.TempDir()
	for range 2 {
		results, w, err := run(t, e, Work{Dir: dir})
		var failed *failedError
		if !errors.As(err, &failed) || failed.Progress.Failed != 4 || failed.Progress.Done != 4 || len(results) != 8 {
			t.Fatalf("%v, %d results", err, len(results))
		}
		for _, text := range results {
			if strings.Contains(text, `"md"`) != strings.Contains(text, "epoch 1") {
				t.Errorf("result %s", text)
			}
		}
		if w.begin.Before > 0 && len(w.ran) != 4 {
			t.Errorf("%d cells ran at the second start", len(w.ran))
		}
	}
}

// A setting is chosen on held-out training bags. A setting that failed is never chosen.
func TestGrid(t *testing.T) {
	e := parse(t, strings.Replace(tiny, "- {name: md, spec: demipl-md,", "- {name: md, spec: demipl-md, grid: "+
		"{train.lr: [1e30, 0.05]},", 1))
	dir := t.TempDir()
	if _, _, err := run(t, e, Work{Dir: dir}); err != nil {
		t.Fatal(err)
	}
	list := accuracies(t, dir)
	for _, r := range list {
		switch {
		case r.Learner == "demipl" && (r.Setting != "" || r.Trials != nil):
			t.Errorf("%s has a setting: %+v", r.Coord, r)
		case r.Learner == "md" && (r.Setting != "train.lr=0.05" || len(r.Trials) != 2 || r.Trials[0].Error == "" ||
			r.Trials[1].Accuracy == nil):
			t.Errorf("%s: %q, %+v", r.Coord, r.Setting, r.Trials)
		}
	}
}

// Held-out bags are training bags, the same share of every class, and each training bag is in one of the folds.
func TestHoldOut(t *testing.T) {
	o := generate.DefaultPrototypes
	o.Bags, o.Classes = 40, 4
	set, err := generate.Prototypes(o)
	if err != nil {
		t.Fatal(err)
	}
	split, err := data.RandomSplit(40, set.TrueLists(), data.SplitSettings{Train: 0.7, Seed: 1, Stratify: true})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		choose  definition.Choose
		counts  []int // held-out bags of each class, in each part
		outside int   // training bags that are never held out
	}{
		"a share": {definition.Choose{Holdout: schema.Float{V: 2. / 7}}, []int{2, 2, 2, 2}, 20},
		"folds":   {definition.Choose{Holdout: schema.Float{V: 0.2}, Folds: schema.Int{V: 7}}, []int{1, 1, 1, 1}, 0},
	} {
		c.choose.Stratify, c.choose.Seed = true, 5
		list, err := holdOut(set, split, c.choose, 1, false)
		if err != nil || len(list) != c.choose.Trainings() {
			t.Fatalf("%s: %d splits, %v", name, len(list), err)
		}
		var heldOut []int
		for _, inner := range list {
			all := slices.Concat(inner.Train, inner.Test)
			slices.Sort(all)
			if !slices.Equal(all, split.Train) {
				t.Errorf("%s: held out %v of %v, training with %v", name, inner.Test, split.Train, inner.Train)
			}
			counts := make([]int, 4)
			for _, bag := range inner.Test {
				counts[set.Labels[bag]]++
			}
			if !slices.Equal(counts, c.counts) {
				t.Errorf("%s: held out %v bags of the classes, want %v", name, counts, c.counts)
			}
			heldOut = append(heldOut, inner.Test...)
		}
		slices.Sort(heldOut)
		if once := slices.Compact(heldOut); len(once) != len(split.Train)-c.outside || len(once) != len(heldOut) {
			t.Errorf("%s: held out %v of %v", name, heldOut, split.Train)
		}
	}
	set.Groups = slices.Repeat([]string{"one"}, 40)
	for want, choose := range map[string]definition.Choose{
		"the bags in 1 group leaves 28 for training and 0 for testing":    {Holdout: schema.Float{V: 0.25}},
		"choose.folds 2 of the training bags of split 1: 1 group cannot ": {Folds: schema.Int{V: 2}},
	} {
		_, err = holdOut(set, split, choose, 1, true)
		if list, ok := diag.ListOf(err); !ok || !strings.Contains(list[0].Text, want) {
			t.Errorf("one group: %v", err)
		} else if notes := list[0].Notes; choose.Folds.V == 0 &&
			!slices.Equal(notes, []string{"all bags of a group are in the same part"}) {
			t.Errorf("one group: %q", notes)
		}
	}
}

// Selected cells can run first. The plan then contains all selections.
func TestSelect(t *testing.T) {
	e := parse(t, tiny)
	dir := t.TempDir()
	if _, w, err := run(t, e, Work{Dir: dir, Select: Selection{R: []int{2}, Learners: []string{"md"}}}); err != nil ||
		len(w.ran) != 2 {
		t.Fatalf("%d cells, %v", len(w.ran), err)
	}
	if _, w, err := run(t, e, Work{Dir: dir, Select: Selection{Splits: 1}}); err != nil || len(w.ran) != 3 ||
		w.begin.Before != 1 {
		t.Fatalf("%d cells, %+v, %v", len(w.ran), w.begin, err)
	}
	p, err := ReadPlan(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range p.Cells {
		got = append(got, fmt.Sprintf("%d %s %d", c.R, c.Learner, c.Split))
	}
	want := []string{"1 demipl 1", "1 md 1", "2 demipl 1", "2 md 1", "2 md 2"}
	if !slices.Equal(got, want) {
		t.Errorf("plan %v, want %v", got, want)
	}
	for _, sel := range []Selection{{Data: []string{"Q"}}, {Learners: []string{"demip"}}, {R: []int{7}}} {
		if _, err := Run(context.Background(), e, Work{Dir: dir, Select: sel}); err == nil {
			t.Errorf("%+v was taken", sel)
		}
	}
}

// The plan after a selection has cells of earlier selections only if they are those of the files of
// today: the report would compare results on other splits, or of other specs.
func TestSelectAfterChange(t *testing.T) {
	work := t.TempDir()
	index, spec := filepath.ToSlash(filepath.Join(work, "index.csv")), filepath.ToSlash(filepath.Join(work, "own.yaml"))
	put := func(path, text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put(index, "split,part,bags\n1,train,1 2 3 4\n1,test,5 6 7 8\n2,train,5 6 7 8\n2,test,1 2 3 4\n")
	put(spec, "name: own\nextends: demipl\ntrain: {epochs: 1, engine: gorgonia}\n")
	e := parse(t, `
name: changed
data:
  - {name: P, synth: {set: prototypes, bags: 8, features: 4}, r: [1], splits: {count: 2, index: "`+index+`"}}
  - {name: Q, synth: {set: prototypes, bags: 8, features: 4}, r: [1], splits: {count: 2}}
learners:
  - {name: own, spec: "`+spec+`"}
  - {name: md, spec: demipl-md, set: {train.epochs: 1, train.engine: gorgonia}}
`)
	dir := t.TempDir()
	planned := func(s Selection, want ...string) {
		t.Helper()
		if _, _, err := run(t, e, Work{Dir: dir, Select: s}); err != nil {
			t.Fatal(err)
		}
		p, err := ReadPlan(dir)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, c := range p.Cells {
			got = append(got, fmt.Sprintf("%s %s %d", c.Data, c.Learner, c.Split))
		}
		if !slices.Equal(got, want) {
			t.Errorf("plan %v, want %v", got, want)
		}
	}
	all := []string{"P own 1", "P own 2", "P md 1", "P md 2", "Q own 1", "Q own 2", "Q md 1", "Q md 2"}
	planned(Selection{}, all...)
	planned(Selection{Learners: []string{"md"}}, all...)
	put(index, "split,part,bags\n1,train,1 2 3 5\n1,test,4 6 7 8\n2,train,5 6 7 8\n2,test,1 2 3 4\n")
	planned(Selection{Learners: []string{"md"}, Data: []string{"P"}}, "P md 1", "P md 2", "Q own 1", "Q own 2", "Q md 1",
		"Q md 2")
	planned(Selection{}, all...)
	put(spec, "name: own\nextends: demipl\ntrain: {epochs: 2, engine: gorgonia}\n")
	planned(Selection{Learners: []string{"md"}}, "P md 1", "P md 2", "Q md 1", "Q md 2")
}

// After a change of a setting, only its cells run again.
func TestChangedFile(t *testing.T) {
	dir := t.TempDir()
	if _, _, err := run(t, parse(t, tiny), Work{Dir: dir}); err != nil {
		t.Fatal(err)
	}
	changed := strings.Replace(tiny, "demipl-md, set: {train.epochs: 2", "demipl-md, set: {train.epochs: 3", 1)
	if _, w, err := run(t, parse(t, changed), Work{Dir: dir}); err != nil || len(w.ran) != 4 || w.begin.Before != 4 {
		t.Errorf("%d cells ran, %+v, %v", len(w.ran), w.begin, err)
	}
}

// A folder that contains something else is not changed.
func TestFolders(t *testing.T) {
	e := parse(t, tiny)
	taken := func(by fileio.FolderKind, files ...string) string {
		dir := t.TempDir()
		if by != "" {
			f, err := fileio.LockFolder(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if err := f.Claim(by, []string{SpecFile}, nil); err != nil {
				t.Fatal(err)
			}
		}
		for i := 0; i < len(files); i += 2 {
			if err := os.WriteFile(filepath.Join(dir, files[i]), []byte(files[i+1]), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		return dir
	}
	locked := taken("")
	lock, err := claim(locked, e)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	other := strings.Replace(tiny, "name: tiny", "name: other", 1)
	for dir, want := range map[string]string{
		taken(fileio.ExperimentFolder, SpecFile, other):  `contains the results of the experiment "other", not of "tiny"`,
		taken(fileio.ExperimentFolder, SpecFile, "oops"): "an experiment is a map",
		taken("", Folder, "mine"):                        "contains results, which miplc did not write",
		taken("", SpecFile, tiny, PlanFile, "mine"):      "no mark of miplc lists: experiment.yaml, plan.json",
		taken(fileio.RunFolder):                          "was written by miplc train",
		filepath.Join(taken("", "file", ""), "file"):     "is a file",
		locked: "another process of miplc is at work",
	} {
		if _, err := Run(context.Background(), e, Work{Dir: dir}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want ...%s...", err, want)
		}
	}
}

// Data that are missing or unsuitable for a learner are errors at their position in the file, before
// any cell runs.
func TestBadData(t *testing.T) {
	index := filepath.Join(t.TempDir(), "index.csv")
	if err := os.WriteFile(index, []byte("bag,split\n1,elsewhere\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"{name: Q, file: missing.npz}": "test.yaml:5:21: there is " +
			"no file missing.npz",
		"{name: Q, synth: mnist-mipl}": "test.yaml:5:12: Q r=1: it " +
			"is drawn from labelled instances",
		"{name: Q, synth: prototypes, splits: {index: none.csv}}": "there is no file none.csv",
		"{name: Q, synth: prototypes, splits: {index: " + filepath.ToSlash(index) + "}}": "test.yaml:5:50: Q r=1: " +
			index + ":1: ",
		"{name: Q, synth: {set: prototypes, classes: 3}, r: 3}": "3 false positive labels",
		"{name: Q, synth: {set: prototypes, bags: 5}, splits: {train: 0.01}}": "test.yaml:5:66: Q r=1: a " +
			"training share of 0.01 of 5 bags leaves 0 for training",
		"{name: Q, file: " + filepath.ToSlash(t.TempDir()) + "/}":                            "Q:",
		"{name: Q, synth: {set: prototypes, features: 3}}\n  - {name: I, synth: prototypes}": "",
	} {
		e := parse(t, strings.Replace(tiny, "learners:", "  - "+text+"\nlearners:", 1))
		_, w, err := run(t, e, Work{Dir: t.TempDir(), Select: Selection{Splits: 1}})
		if want == "" {
			if err != nil {
				t.Errorf("%s: %v", text, err)
			}
			continue
		}
		_, ofData := errors.AsType[*DataError](err)
		_, ofSetting := errors.AsType[*diag.InvalidError](err)
		if setting := strings.Contains(text, "train:"); ofSetting != setting || ofData == setting ||
			!strings.Contains(err.Error(), want) || len(w.ran) > 0 {
			t.Errorf("%s: %v, want ...%s...", text, err, want)
		}
	}
	e := parse(t, strings.Replace(tiny, "spec: demipl-md", "spec: demipl-image", 1))
	_, w, err := run(t, e, Work{Dir: t.TempDir()})
	var wrong *diag.InvalidError
	if !errors.As(err, &wrong) || !strings.Contains(err.Error(), `test.yaml:7:22: learner "md": `) || len(w.ran) > 0 {
		t.Errorf("images on features: %v", err)
	}
	e = parse(t, strings.Replace(tiny, "spec: demipl-md,", "spec: demipl-md, vary: {data.classes: [5, 6]},", 1))
	_, _, err = run(t, e, Work{Dir: t.TempDir()})
	if !errors.As(err, &wrong) || !strings.Contains(err.Error(), `test.yaml:7:58: learner "md": `) {
		t.Errorf("a varied value that is unsuitable for the data: %v, want its position", err)
	}
}

// The settings of a generated dataset are those of its file, also if a value is 0.
func TestDraw(t *testing.T) {
	want := generate.DefaultPrototypes
	want.Bags, want.Classes, want.Noise, want.Candidates, want.Seed = 8, 4, 0, 0, 3
	set, err := generate.Prototypes(want)
	if err != nil {
		t.Fatal(err)
	}
	e := parse(t, strings.Replace(tiny, "bags: 20, features: 4, min_size: 2, max_size: 3",
		"bags: 8, classes: 4, noise: 0, seed: 3", 1))
	got, err := draw(e.Data[0].Synth, 0, bagfile.Folder{})
	if err != nil || got.Hash() != set.Hash() {
		t.Errorf("noise: 0 gives a different dataset than no noise, %v", err)
	}
}

// A cell that fails at a file, such as on a full disk, keeps its checkpoints, and the next start continues
// from them.
func TestCheckpointsAfterFileError(t *testing.T) {
	e, dir := parse(t, tiny+"keep: models\n"), t.TempDir()
	blocked := filepath.Join(dir, ModelsFolder)
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	const cells = 8
	if _, w, err := run(t, e, Work{Dir: dir, CheckpointInterval: 1}); err == nil || len(w.ran) != cells {
		t.Fatalf("%d cells ran, %v", len(w.ran), err)
	}
	if kept, _ := filepath.Glob(filepath.Join(dir, TrialsFolder, "*")); len(kept) != cells {
		t.Errorf("%d of %d cells keep their checkpoints", len(kept), cells)
	}
	if err := os.Remove(blocked); err != nil {
		t.Fatal(err)
	}
	if _, _, err := run(t, e, Work{Dir: dir, CheckpointInterval: 1}); err != nil {
		t.Fatal(err)
	}
	if kept, _ := filepath.Glob(filepath.Join(dir, TrialsFolder, "*")); len(kept) > 0 {
		t.Errorf("checkpoints of finished cells are left: %v", kept)
	}
}

// With keep: models, every cell writes the folder of a run.
func TestKeepModels(t *testing.T) {
	enginetest.Library(t)
	e := parse(t, tiny+"keep: models\n")
	dir := t.TempDir()
	kept, _, err := run(t, e, Work{Dir: dir, Select: Selection{Splits: 1, R: []int{1}}})
	if err != nil {
		t.Fatal(err)
	}
	later := t.TempDir() // to which keep: models is added when its cells have results
	plain, _, err := run(t, parse(t, tiny), Work{Dir: later, Select: Selection{Splits: 1, R: []int{1}}})
	if err != nil || !maps.Equal(kept, plain) {
		t.Errorf("with models %v, without %v, %v", kept, plain, err)
	}
	for _, ran := range []int{len(kept), 0} {
		again, w, err := run(t, e, Work{Dir: later, Select: Selection{Splits: 1, R: []int{1}}})
		if err != nil || len(w.ran) != ran || !maps.Equal(again, kept) {
			t.Errorf("with keep: models added, %d cells ran, not %d, with %v, not %v, %v", len(w.ran), ran, again, kept, err)
		}
	}
	s, err := runs.ReadSummary(filepath.Join(dir, ModelsFolder, "P_r=1", "md", "split-1"))
	if err != nil || s.TestAccuracy == nil {
		t.Errorf("%v, %v", s, err)
	}
}

// A cell runs again if its model was deleted, or if the process that wrote its run was killed. It waits for another
// process that writes the same run.
func TestKeepModelsAgain(t *testing.T) {
	e := parse(t, tiny+"keep: models\n")
	enginetest.Library(t)
	o := Work{Dir: t.TempDir(), Select: Selection{Splits: 1, R: []int{1}}}
	if _, _, err := run(t, e, o); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(o.Dir, ModelsFolder, "P_r=1", "md", "split-1")
	for _, missing := range []string{runs.ModelFile, runs.SummaryFile} {
		if err := os.Remove(filepath.Join(dir, missing)); err != nil {
			t.Fatal(err)
		}
		other, err := fileio.LockFolder(dir)
		if err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(100*time.Millisecond, other.Close)
		_, w, err := run(t, e, o)
		if err != nil || len(w.ran) != 1 {
			t.Errorf("without %s: %d cells ran, %v", missing, len(w.ran), err)
		}
		if s, err := runs.ReadSummary(dir); err != nil || s.ModelSHA256 == "" {
			t.Errorf("without %s: %+v, %v", missing, s, err)
		}
	}
}

// The message of a model that fails its check names a file that exists.
func TestKeepFailedModel(t *testing.T) {
	e := parse(t, tiny+"keep: models\n")
	e.Learners = e.Learners[:1]
	spec := filepath.Join(t.TempDir(), "steep.yaml")
	if err := os.WriteFile(spec, []byte(steep), 0o666); err != nil {
		t.Fatal(err)
	}
	e.Learners[0].Spec.V = spec
	enginetest.Library(t)
	o := Work{Dir: t.TempDir(), Select: Selection{Splits: 1, R: []int{1}}}
	_, w, err := run(t, e, o)
	if failed := (*failedError)(nil); !errors.As(err, &failed) || len(w.ran) != 1 {
		t.Fatalf("%d cells ran, %v", len(w.ran), err)
	}
	dir := filepath.Join(o.Dir, ModelsFolder, "P_r=1", "demipl", "split-1")
	kept := filepath.Join(dir, runs.FailedModelFile)
	for _, r := range accuracies(t, o.Dir) {
		if !strings.Contains(r.Error, "the model is kept as "+kept) {
			t.Errorf("the error of the cell: %s", r.Error)
		}
	}
	for _, name := range []string{runs.FailedModelFile, runs.FailedReportFile, runs.SpecFile} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
}

// steep is a spec that float32 cannot compute, see failed.txtar.
const steep = `
name: steep
extends: quickstart
model:
  blocks: []
  numbers: {slope: 3e7}
  params:
    u: {shape: [d, 1]}
    C: {shape: [d, k]}
  let:
    s: matmul(X, u)
    a: bag_softmax(s)
    z: bag_sum(a * X)
    logp: log_softmax((matmul(z, C) + slope) - slope)
    p: exp(logp)
loss: [disambiguation]
train: {lr: 0.01, seed: 2}
`

// An experiment that is interrupted during trainings resumes them, with the same results, and
// removes their checkpoints at the end.
func TestInterruptedInsideACell(t *testing.T) {
	enginetest.Library(t)
	text := strings.Replace(tiny, "train.epochs: 2, train.engine: gorgonia}",
		"train.epochs: 60}, grid: {train.lr: [0.01, 0.05]}", 1)
	e := parse(t, strings.Replace(text, "train.engine: gorgonia", "train.batch: 2", 1))
	for _, engine := range []string{"gorgonia", "native", "xla"} {
		t.Run(engine, func(t *testing.T) {
			o := Work{Dir: t.TempDir(), CheckpointInterval: time.Nanosecond,
				Place: engines.Place{Engine: engine, Device: device(engine), Open: enginetest.Open}}
			whole, w, err := run(t, e, o)
			if err != nil {
				t.Fatal(err)
			}
			if w.last.Percent != 100 || slices.Max(w.left) == 0 {
				t.Errorf("the last progress is %+v, at most %v were left", w.last, slices.Max(w.left))
			}
			o.Dir = filepath.Join(t.TempDir(), "out[1]") // special characters of patterns
			for range 3 {
				began := furthest(o.Dir)
				ctx, cancel := context.WithCancel(context.Background())
				over := make(chan error)
				go func() {
					_, err := Run(ctx, e, o)
					over <- err
				}()
				for now := began; now < began+10; now = furthest(o.Dir) {
					if now < began-1 { // during a rename the newest checkpoint is missing
						t.Errorf("training began again after epoch %d, at %d", began, now)
					}
					time.Sleep(time.Millisecond)
				}
				cancel()
				var stopped *InterruptedError
				if err := <-over; !errors.As(err, &stopped) || stopped.Progress.Done > 0 {
					t.Fatal(err)
				}
				if n := stopped.Progress.Unfinished; n == 0 || n > 8 ||
					!strings.Contains(stopped.Error(), "done and kept, and checkpoints of ") {
					t.Errorf("checkpoints of %d cells: %v", n, stopped)
				}
			}
			again, _, err := run(t, e, o)
			if err != nil || !maps.Equal(whole, again) {
				t.Errorf("interrupted in cells: %v\n%v\n%v", err, again, whole)
			}
			if _, err := os.Stat(filepath.Join(o.Dir, TrialsFolder)); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("checkpoints are left: %v", err)
			}
		})
	}
}

// furthest returns the last epoch of any checkpoint of a cell under way, 0 without one.
func furthest(dir string) (epoch int) {
	for _, path := range fileio.Glob(filepath.Join(dir, TrialsFolder), "*/*/*") {
		if c, _, err := train.LoadCheckpoint(path); err == nil {
			epoch = max(epoch, c.Epoch)
		}
	}
	return epoch
}

// device makes engine xla use the Go executor: compiling with an installed plugin would take long.
func device(engine string) string {
	if engine == engines.XLA {
		return engines.Go
	}
	return engines.CPU
}
