// Shards on other machines give the results of one process, and refuse to start after any input has changed.

package experiment

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/miplc/miplc/data/bagfile"
	"github.com/miplc/miplc/data/generate"
	"github.com/miplc/miplc/experiment/definition"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/resources"
	"github.com/miplc/miplc/internal/testkit/enginetest"
	"github.com/miplc/miplc/train/engines"
)

// staging returns an experiment with files outside its folder: a dataset, splits and a spec.
func staging(t *testing.T) *definition.Experiment {
	t.Helper()
	dir := t.TempDir()
	p := generate.DefaultPrototypes
	p.Bags = 12
	set, err := generate.Prototypes(p)
	if err != nil {
		t.Fatal(err)
	}
	if err := bagfile.Save(filepath.Join(dir, "bags.csv"), set); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"splits.csv": "split,part,bags\n1,train,1 2 3 4 5 6 7 8\n1,test,9 10 11 12\n2,train,5 6 7 8 9 10 11 12\n2,test,1 " +
			"2 3 4\n",
		"own.yaml": "name: own\nextends: demipl\ntrain: {epochs: 2, engine: gorgonia}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return parse(t, fmt.Sprintf(`
name: staging
data:
  - {name: F, file: %[1]q, splits: {index: %[2]q, count: 2}}
  - {name: P, synth: {set: prototypes, bags: 20, features: 4}, splits: {folds: 2, validation: 0.2}}
learners:
  - {name: own, spec: %[3]q, grid: {train.lr: [0.01, 0.1]}}
  - {name: aggd, spec: pl-aggd-mean}
  - {name: last, spec: %[3]q, set: {train.lr: 0.3}, last: 2, data: F}
splits: {count: 2}
`, filepath.Join(dir, "bags.csv"), filepath.Join(dir, "splits.csv"), filepath.Join(dir, "own.yaml")))
}

// Shards give the results of one process. They need only the folder: the planned files no longer
// exist.
func TestShards(t *testing.T) {
	e := staging(t)
	whole, _, err := run(t, e, Work{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	shardPlan, err := PlanShards(e, Work{Dir: dir}, Sharding{Shards: 3})
	if err != nil || len(shardPlan.Shards) != 3 {
		t.Fatalf("%+v, %v", shardPlan, err)
	}
	if err := os.RemoveAll(filepath.Dir(e.Data[0].File.V)); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(dir, dir+"-elsewhere"); err != nil {
		t.Fatal(err)
	}
	dir += "-elsewhere"
	ran := 0
	for i := range 3 {
		w := &watch{}
		if _, err := RunShard(context.Background(), Shard{I: i + 1, N: 3, PlanID: shardPlan.ID},
			Work{Dir: dir, Observer: w}); err != nil {
			t.Fatal(err)
		}
		ran += len(w.ran)
	}
	if got := read(t, dir); ran != len(whole) || !maps.Equal(got, whole) {
		t.Errorf("%d cells ran\n%v\n%v", ran, got, whole)
	}
	if _, err := RunShard(context.Background(), Shard{I: 1, N: 3}, Work{Dir: dir, Observer: &watch{after: 1,
		stop: func() { t.Error("a finished cell ran again") }}}); err != nil {
		t.Error(err)
	}
}

// Processes that compute the same shard share the folder of checkpoints. One process may remove the
// checkpoints of a finished cell; the others do not fail.
func TestSameShard(t *testing.T) {
	e := parse(t, strings.ReplaceAll(tiny, "train.epochs: 2", "train.epochs: 10"))
	dir := t.TempDir()
	if _, err := PlanShards(e, Work{Dir: dir}, Sharding{Shards: 1}); err != nil {
		t.Fatal(err)
	}
	var running resources.Group
	for range 3 {
		running.Go(func() {
			if _, err := RunShard(context.Background(), Shard{I: 1, N: 1}, Work{Dir: dir, Parallel: 1,
				CheckpointInterval: 1}); err != nil {
				t.Error(err)
			}
		})
	}
	running.Wait()
	have, err := Read(dir)
	if err != nil || len(have.ByKey) != 8 || len(have.Differ) > 0 {
		t.Errorf("%d results, %v differ, %v", len(have.ByKey), have.Differ, err)
	}
	for _, r := range have.ByKey {
		if r.Error != "" {
			t.Errorf("%+v", r)
		}
	}
	if left, err := filepath.Glob(filepath.Join(dir, TrialsFolder)); err != nil || left != nil {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// Shards of another plan, or of a plan whose files have changed, are an error before any cell runs.
func TestShardsThatDoNotFit(t *testing.T) {
	replace := func(pattern, old, new string) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			files, err := filepath.Glob(filepath.Join(dir, filepath.FromSlash(pattern)))
			if err != nil || len(files) == 0 {
				t.Fatalf("%s: %v, %v", pattern, files, err)
			}
			for _, path := range files {
				text, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(strings.Replace(string(text), old, new, 1)), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	remove := func(pattern string) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			files, _ := filepath.Glob(filepath.Join(dir, filepath.FromSlash(pattern)))
			for _, path := range files {
				if err := os.Remove(path); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	for name, c := range map[string]struct {
		change func(t *testing.T, dir string)
		shard  Shard
		want   string
	}{
		"another number": {nil, Shard{I: 2, N: 3}, "was planned for 2 shards"},
		"another plan":   {nil, Shard{I: 1, N: 2, PlanID: "0123"}, "the job is of the plan 0123"},
		"no plan":        {remove(ShardsFile), Shard{I: 1, N: 2}, "was not planned for shards"},
		"half a plan":    {replace(ShardsFile, "}", ""), Shard{I: 1, N: 2}, "shards.json"},
		"no cell":        {replace(ShardsFile, `"cells": [`, `"cells": [null,`), Shard{I: 1, N: 2}, "shards.json is damaged"},
		"no group": {replace(ShardsFile, `"groups": [`, `"groups": [null,`), Shard{I: 1, N: 2},
			"shards.json is damaged"},
		"experiment": {replace(SpecFile, "staging", "changed"), Shard{I: 1, N: 2},
			"experiment.yaml was changed since the experiment was planned"},
		"bags": {replace("data/F-*.csv", "0.", "1."), Shard{I: 1, N: 2},
			"was changed since the experiment was planned"},
		"bags gone":  {remove("data/F-*.csv"), Shard{I: 1, N: 2}, "no such file"},
		"drawn bags": {remove("data/P-*.npz"), Shard{I: 1, N: 2}, "no such file"},
		"splits": {replace("data/F-splits.csv", "8\n1,test,9", "9\n1,test,8"), Shard{I: 1, N: 2},
			"differs from the cell that was planned"},
		"spec": {replace("specs/*.yaml", "epochs: 2", "epochs: 3"), Shard{I: 1, N: 2},
			"was changed since the experiment was planned"},
		"spec gone": {remove("specs/*.yaml"), Shard{I: 1, N: 2}, "is missing"},
		"key": {replace(ShardsFile, `"key": "`, `"key": "0`), Shard{I: 1, N: 2},
			"differs from the cell that was planned"},
		"cell of no set": {replace(ShardsFile, `"data": "F"`, `"data": "G"`), Shard{I: 1, N: 2}, ""},
		"library": {replace("lib/*", "onnxruntime", "xnnoruntime"), Shard{I: 1, N: 2},
			"was changed since the experiment was planned"},
		"planned to an end": {func(t *testing.T, dir string) {
			d, err := readShardPlan(dir)
			if err != nil {
				t.Fatal(err)
			}
			d.Shards = nil
			if err := d.write(dir); err != nil {
				t.Fatal(err)
			}
		}, Shard{I: 1, N: 2}, "all cells were finished"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			o := Work{Dir: dir, Select: Selection{Splits: 1}}
			if _, err := PlanShards(staging(t), o, Sharding{Shards: 2}); err != nil {
				t.Fatal(err)
			}
			if c.change != nil {
				c.change(t, dir)
			}
			var wrong *diag.InvalidError
			var texts []string
			for i := range 2 { // the change may affect either shard
				c.shard.I = i + 1
				w := &watch{}
				if _, err := RunShard(context.Background(), c.shard, Work{Dir: dir, Observer: w}); errors.As(err, &wrong) {
					texts = append(texts, err.Error())
					if len(w.ran) > 0 {
						t.Errorf("%d cells ran", len(w.ran))
					}
				} else if err != nil {
					t.Error(err)
				}
			}
			if !strings.Contains(strings.Join(texts, "\n"), c.want) || len(texts) == 0 {
				t.Errorf("%q, want ...%s...", texts, c.want)
			}
		})
	}
}

func TestParseShard(t *testing.T) {
	for _, c := range []struct {
		text, env string
		want      Shard
		says      string
	}{
		{"3/16", "", Shard{I: 3, N: 16}, ""},
		{"1/1", "MIPLC_PLAN=ab", Shard{I: 1, N: 1, PlanID: "ab"}, ""},
		{"auto", "SLURM_ARRAY_TASK_ID=0 MIPLC_SHARDS=4", Shard{I: 1, N: 4}, ""},
		{"auto", "SLURM_ARRAY_TASK_ID=3 SLURM_ARRAY_TASK_COUNT=1 MIPLC_SHARDS=4", Shard{I: 4, N: 4}, ""},
		{"auto", "JOB_COMPLETION_INDEX=2 MIPLC_SHARDS=4 MIPLC_PLAN=ab", Shard{I: 3, N: 4, PlanID: "ab"}, ""},
		{"auto", "SLURM_ARRAY_TASK_ID=4 MIPLC_SHARDS=4", Shard{},
			`SLURM_ARRAY_TASK_ID is "4"; with 4 shards it is a number from 0 to 3`},
		{"auto", "JOB_COMPLETION_INDEX=x MIPLC_SHARDS=4", Shard{}, `JOB_COMPLETION_INDEX is "x"`},
		{"auto", "SLURM_ARRAY_TASK_ID=1 SLURM_ARRAY_TASK_COUNT=4", Shard{}, `MIPLC_SHARDS is ""`},
		{"auto", "MIPLC_SHARDS=4", Shard{}, "no task number"},
		{"0/4", "", Shard{}, "write I/N"}, {"5/4", "", Shard{}, "write I/N"}, {"-1/4", "", Shard{}, "write I/N"},
		{"2", "", Shard{}, "write I/N"}, {"a/b", "", Shard{}, "write I/N"}, {"1/2/3", "", Shard{}, "write I/N"},
		{"Auto", "", Shard{}, "write I/N"},
	} {
		env := map[string]string{}
		for _, pair := range strings.Fields(c.env) {
			name, value, _ := strings.Cut(pair, "=")
			env[name] = value
		}
		got, err := ParseShard(c.text, func(name string) string { return env[name] })
		if c.says == "" && (err != nil || got != c.want) || c.says != "" &&
			(err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s with %q: %+v, %v; want %+v %s", c.text, c.env, got, err, c.want, c.says)
		}
	}
}

// Every group is in exactly one shard. The longest shards come first, and shards have similar
// lengths if the groups allow it.
func TestAssignGroups(t *testing.T) {
	var groups []*group
	total := 0.0
	for i := range 100 {
		g := &group{Seconds: float64(1 + i*i%37), Planned: i}
		groups, total = append(groups, g), total+g.Seconds
	}
	shards := assignGroups(groups, 8)
	seen := map[*group]bool{}
	last := shards[0].Seconds
	for _, s := range shards {
		sum := 0.0
		for _, g := range s.Groups {
			if seen[g] {
				t.Errorf("group %d twice", g.Planned)
			}
			seen[g] = true
			sum += g.Seconds
		}
		if sum != s.Seconds || s.Seconds > last {
			t.Errorf("a shard of %v seconds has Seconds %v and comes after one of %v", sum, s.Seconds, last)
		}
		last = s.Seconds
	}
	if len(seen) != 100 || shards[0].Seconds > 1.05*total/8 {
		t.Errorf("%d groups; the longest shard has %v of %v seconds", len(seen), shards[0].Seconds, total)
	}
	if !slices.EqualFunc(assignGroups(groups, 8), shards, func(a, b shardGroups) bool {
		return slices.Equal(a.Groups, b.Groups)
	}) {
		t.Error("the second assignment differs")
	}
}

// The number of shards follows workers and work, and never exceeds the groups.
func TestShardCount(t *testing.T) {
	for _, c := range []struct {
		d       Sharding
		groups  int
		seconds float64 // of a group
		want    int
	}{
		{Sharding{Workers: 4}, 1000, 1000, 32},
		{Sharding{Workers: 16}, 200, 1, 1},
		{Sharding{Workers: 16}, 200, 10, 7},
		{Sharding{Workers: 16}, 5, 1e6, 5},
		{Sharding{Shards: 8, Workers: 16}, 200, 1, 8},
		{Sharding{Shards: 8}, 3, 1, 3},
		{Sharding{Workers: 16}, 0, 0, 0},
	} {
		if got := c.d.count(c.groups, float64(c.groups)*c.seconds); got != c.want {
			t.Errorf("%+v of %d groups: %d shards, want %d", c.d, c.groups, got, c.want)
		}
	}
}

// Planning again assigns only unfinished cells, in groups of the planned size.
func TestPlanAgain(t *testing.T) {
	e := parse(t, parallelText)
	dir := t.TempDir()
	o := Work{Dir: dir, Place: engines.Place{Engine: "xla", Device: "go", Open: enginetest.Open}}
	first, err := PlanShards(e, o, Sharding{Shards: 2})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := RunShard(context.Background(), Shard{I: 2, N: 2}, Work{Dir: dir, Place: o.Place}); err != nil {
		t.Fatal(err)
	}
	left := 0
	for _, g := range first.Shards[0].Groups {
		left += len(g.Cells)
	}
	again, err := PlanShards(e, o, Sharding{Shards: 2})
	if err != nil {
		t.Fatal(err)
	}
	if cells, _ := again.Cells(); cells != left || again.ID == first.ID {
		t.Errorf("%d cells left, want %d; plans %s and %s", cells, left, first.ID, again.ID)
	}
	for i := range again.Shards {
		shard := Shard{I: i + 1, N: len(again.Shards)}
		if _, err := RunShard(context.Background(), shard, Work{Dir: dir, Place: o.Place}); err != nil {
			t.Fatal(err)
		}
	}
	whole, _, err := run(t, e, Work{Dir: t.TempDir(), Place: o.Place})
	if err != nil || !maps.Equal(read(t, dir), whole) {
		t.Errorf("shards have other results than one process: %v", err)
	}
	if last, err := PlanShards(e, o, Sharding{}); err != nil || len(last.Shards) != 0 {
		t.Errorf("%+v, %v", last, err)
	}
}

// A success overrides a failure of any process. Different results for one cell are reported, and
// the selected one does not depend on the order of the files.
func TestMerge(t *testing.T) {
	line := func(split int, accuracy float64, seconds int, failed string) string {
		return fmt.Sprintf(`{"data":"P","r":1,"learner":"a","split":%d,"key":"k%d","accuracy":%v,"seconds":%d,`+
			`"environment":{"cores":%d},"error":%q}`+"\n", split, split, accuracy, seconds, seconds, failed)
	}
	files := []string{
		line(1, 0, 1, "torn down") + line(2, 0.5, 1, "") + line(3, 0.25, 1, ""),
		line(1, 0.75, 1, "") + line(2, 0.5, 2, "") + line(3, 0.5, 2, "") + `{"data":"P","r":1,"lear`,
		line(1, 0, 1, "again") + line(4, 0, 1, "one") + line(4, 0, 1, "two"),
	}
	var first map[string]string
	for range 3 {
		dir := t.TempDir()
		if err := os.Mkdir(filepath.Join(dir, Folder), 0o755); err != nil {
			t.Fatal(err)
		}
		for i, text := range files {
			if err := os.WriteFile(filepath.Join(dir, Folder, fmt.Sprint(i, ".jsonl")), []byte(text), 0o444); err != nil {
				t.Fatal(err)
			}
		}
		r, err := Read(dir)
		if err != nil {
			t.Fatal(err)
		}
		if r.ByKey["k1"].Accuracy != 0.75 || r.ByKey["k4"].Error == "" || r.Done("k4") || !r.Done("k1") {
			t.Errorf("%+v", r.ByKey)
		}
		if len(r.Differ) != 1 || !r.Differ["k3"] {
			t.Errorf("differ %v", r.Differ)
		}
		if got := read(t, dir); first == nil {
			first = got
		} else if !maps.Equal(got, first) {
			t.Errorf("%v\n%v", got, first)
		}
		files = append(files[1:], files[0])
	}
}
