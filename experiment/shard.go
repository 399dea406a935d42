// One process of an experiment on several machines: the cells of its shard, and the check that they are still those
// that were planned.

package experiment

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/experiment/definition"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/runs"
	"github.com/miplc/miplc/train/engines"
)

// Environment variables of a process that computes a shard.
const (
	EnvShards = "MIPLC_SHARDS" // number of shards
	EnvPlan   = "MIPLC_PLAN"   // ShardPlan.ID for which the job was made; empty: any
)

// indices are the environment variables with the task number, from 0, of a Slurm array and of an
// indexed Kubernetes Job.
var indices = []string{"SLURM_ARRAY_TASK_ID", "JOB_COMPLETION_INDEX"}

// Shard is the part of the cells that one process computes: number I, from 1, of N.
type Shard struct {
	I, N   int
	PlanID string // ShardPlan.ID; empty: any
}

// ParseShard parses I/N, or determines the shard from the environment for "auto". It does not use
// the number of tasks that the scheduler reports, because that is smaller when some tasks are
// resubmitted.
func ParseShard(text string, getenv func(string) string) (Shard, error) {
	s := Shard{PlanID: getenv(EnvPlan)}
	if text != "auto" {
		i, n, found := strings.Cut(text, "/")
		var e1, e2 error
		s.I, e1 = strconv.Atoi(i)
		s.N, e2 = strconv.Atoi(n)
		if !found || e1 != nil || e2 != nil || s.I < 1 || s.N < s.I {
			return s, fmt.Errorf("--shard %q: write I/N, such as 3/16, with I from 1 to N, or auto", text)
		}
		return s, nil
	}
	var err error
	if s.N, err = strconv.Atoi(getenv(EnvShards)); err != nil || s.N < 1 {
		return s, fmt.Errorf("--shard auto: %s is %q; the job file sets it to the number of shards", EnvShards,
			getenv(EnvShards))
	}
	for _, name := range indices {
		text := getenv(name)
		if text == "" {
			continue
		}
		index, err := strconv.Atoi(text)
		if err != nil || index < 0 || index >= s.N {
			return s, fmt.Errorf("--shard auto: %s is %q; with %d shards it is a number from 0 to %d", name, text, s.N, s.N-1)
		}
		s.I = index + 1
		return s, nil
	}
	return s, fmt.Errorf("--shard auto: the environment has no task number (%s)", strings.Join(indices, " or "))
}

// planErrorf returns a *diag.InvalidError.
func planErrorf(format string, args ...any) error { return diag.Invalid(fmt.Errorf(format, args...)) }

// RunShard computes the cells of one shard that have no result yet. It needs only the folder and
// may run concurrently with other shards: it locks nothing, removes only its own files, and writes
// results to its own file. It checks everything that the cells need before the first one runs;
// these errors are *diag.InvalidError. Options that select cells and engines are ignored in favour of the
// plan.
func RunShard(ctx context.Context, s Shard, o Work) (Progress, error) {
	shardPlan, err := readShardPlan(o.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return Progress{}, planErrorf("%s was not planned for shards: make it ready with miplc experiment plan", o.Dir)
	}
	if err != nil {
		return Progress{}, diag.Invalid(err)
	}
	e, err := shardPlan.openExperiment(s, o.Dir)
	if err != nil {
		return Progress{}, err
	}
	if err := o.resumeColumns(e); err != nil {
		return Progress{}, diag.Invalid(err)
	}
	groups := shardPlan.Shards[s.I-1].Groups
	if err := shardPlan.bind(e, groups, o); err != nil {
		return Progress{}, diag.Invalid(err)
	}
	if err := shardPlan.startLibrary(o.Dir); err != nil {
		return Progress{}, diag.Invalid(err)
	}
	have, err := Read(o.Dir)
	if err != nil {
		return Progress{}, err
	}
	p := &o.Place
	p.Engine, p.Device, p.Auto, p.Shared = shardPlan.Engine, shardPlan.Device, shardPlan.Auto, true
	r := &runner{e: e, o: o, part: fmt.Sprintf("%d-of-%d", s.I, s.N), trainers: engines.NewTrainers(o.Place),
		writer: runs.NewWriter(),
		groups: groups, have: have, maxGroup: shardPlan.MaxGroup}
	defer r.close()
	return r.run(ctx)
}

// openExperiment checks that a shard belongs to the plan and reads the experiment.
func (d *ShardPlan) openExperiment(s Shard, dir string) (*definition.Experiment, error) {
	again := "submit the job of the last plan, or plan again"
	switch {
	case s.PlanID != "" && s.PlanID != d.ID:
		return nil, planErrorf("the job is of the plan %s, and %s was planned again since, as %s: %s", s.PlanID, dir, d.ID,
			again)
	case len(d.Shards) == 0:
		return nil, planErrorf("all cells were finished when %s was planned: there are no shards", dir)
	case s.N != len(d.Shards):
		return nil, planErrorf("shard %d/%d: %s was planned for %d shards: %s", s.I, s.N, dir, len(d.Shards), again)
	}
	if err := checkUnchanged(filepath.Join(dir, SpecFile), d.Experiment); err != nil {
		return nil, planErrorf("%w: plan again", err)
	}
	e, err := Open(dir)
	if err != nil {
		return nil, diag.Invalid(err)
	}
	return e, nil
}

// encodedSet identifies a dataset and the encoder of its features.
type encodedSet struct {
	data    string
	r       int
	encoder string
}

// bind sets the specs and datasets of the cells and checks that they still give the same keys.
func (d *ShardPlan) bind(e *definition.Experiment, groups []*group, o Work) error {
	grids := map[definition.Coord][]gridPoint{}
	for _, c := range d.Grids {
		grids[c.Coord] = c.Grid
	}
	sets := map[encodedSet]*stagedSet{}
	for i := range d.Sets {
		f := &d.Sets[i].SetFacts
		sets[encodedSet{f.Name, f.R, f.Encoder}] = &d.Sets[i]
	}
	opened := map[encodedSet]*sharedDataset{}
	for _, g := range groups {
		for _, c := range g.Cells {
			at := c.AllSplits()
			if len(grids[at]) == 0 {
				return fmt.Errorf("%s: the plan has no spec for it", c.Coord)
			}
			for i := range grids[at] {
				if point := &grids[at][i]; point.spec == nil {
					if err := point.load(o.Dir); err != nil {
						return err
					}
				}
			}
			on := encodedSet{c.Data, c.R, encoderOf(grids[at][0].spec)}
			if sets[on] == nil {
				return fmt.Errorf("%s: the plan has no dataset for it", c.Coord)
			}
			if opened[on] == nil {
				opened[on] = sets[on].dataset(o)
			}
			c.grid, c.dataset, c.estimate = grids[at], opened[on], g.Seconds/float64(len(g.Cells))
		}
	}
	for _, in := range opened {
		if err := checkKeys(e, in, groups); err != nil {
			return err
		}
	}
	return nil
}

// checkKeys opens a dataset and compares the keys of its cells with those in the plan.
func checkKeys(e *definition.Experiment, in *sharedDataset, groups []*group) error {
	set, err := in.open()
	if err != nil {
		return err
	}
	in.opened = nil // reopened for the first cell
	splits := map[int]*data.Split{}
	for _, c := range cellsOf(groups) {
		if c.dataset != in {
			continue
		}
		if splits[c.Split] == nil {
			if splits[c.Split], err = makeSplit(in.splits, c.Split, set.Dataset, in.folder); err != nil {
				return err
			}
		}
		now, err := key(c.grid, rulesOf(e, e.Learner(c.Learner)), e.Choose, e.Attention.Epochs, in.facts.Hash,
			splits[c.Split].Hash())
		if err != nil {
			return err
		}
		if now != c.Key {
			return fmt.Errorf("%s differs from the cell that was planned, because its split changed or another version of "+
				"miplc planned it: plan again", c.Coord)
		}
	}
	return nil
}
