// The distribution of cells over shards, so that all take about the same time.

package experiment

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"slices"

	"github.com/miplc/miplc/experiment/definition"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/fileio"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/runs"
	"github.com/miplc/miplc/train/engines"
)

// ShardPlan is the plan of the shards: the cells that had no result when it was made, assigned to
// processes that need only the folder of the experiment. It is stored in ShardsFile.
type ShardPlan struct {
	ID         string `json:"id"`                // hash of the other fields
	Experiment string `json:"experiment_sha256"` // of SpecFile
	Name       string `json:"name"`
	Miplc      string `json:"miplc"` // version that made the plan

	Engine   string  `json:"engine,omitempty"` // of all cells; empty: from the specs
	Device   string  `json:"device,omitempty"`
	Auto     string  `json:"auto,omitempty"` // engine to use for auto in specs
	MaxGroup int     `json:"max_group"`      // maximum number of trainings in one program
	CPUs     int     `json:"cpus,omitempty"` // cores per process; 0: unknown
	Library  *staged `json:"library,omitempty"`

	Sets   []stagedSet   `json:"sets"`
	Grids  []stagedGrid  `json:"choices"`
	Shards []shardGroups `json:"shards"` // the longest first

	Warnings []string `json:"-"` // about the datasets
}

// shardGroups is the work of one process.
type shardGroups struct {
	Seconds float64  `json:"seconds"` // estimated seconds on one core, or on the device
	Groups  []*group `json:"groups"`  // the longest first
}

// Sharding defines how cells are assigned to shards.
type Sharding struct {
	Shards  int // 0: several per worker, if each takes at least some minutes
	Workers int // number of processes that run at once
	CPUs    int // cores per process; 0: unknown
}

// Default number of shards per worker, for balancing by the scheduler's queue, and the minimum
// duration of a shard, which should exceed the start of a process.
const (
	shardsPerWorker = 8
	leastSeconds    = 300
)

// PlanShards writes the plan of an experiment and assigns the cells without a result to shards,
// which RunShard computes. It copies everything they need to the folder and determines the engine.
// Errors are those of Run. The result has no shards if all cells are done.
func PlanShards(e *definition.Experiment, o Work, d Sharding) (*ShardPlan, error) {
	if err := checkShardModels(e); err != nil {
		return nil, diag.Invalid(err)
	}
	r, err := newRunner(e, o)
	if err != nil {
		return nil, err
	}
	defer r.close()
	shardPlan := &ShardPlan{Experiment: r.plan.SHA256, Name: r.plan.Name, Miplc: runs.CurrentBuild().Miplc,
		Engine: o.Place.Engine, Device: o.Place.Device, Auto: o.Place.Auto, MaxGroup: r.maxGroup, CPUs: d.CPUs,
		Warnings: r.plan.warnings()}
	costs := costsFromResults(cellsOf(r.groups), r.have)
	groups, total := removeCells(r.groups, r.finished), 0.0
	for _, g := range groups {
		for _, c := range g.Cells {
			g.Seconds += costs.seconds(c)
		}
		total += g.Seconds
		if shardPlan.Auto == "" {
			if err := shardPlan.resolveAutoEngine(g, r.trainers); err != nil {
				return nil, err
			}
		}
	}
	n := d.count(len(groups), total)
	shardPlan.Shards = assignGroups(groups, n)
	if err := shardPlan.stage(o, r.plan, groups); err != nil {
		return nil, err
	}
	return shardPlan, shardPlan.write(o.Dir)
}

// checkShardModels returns an error if models are kept that contain an encoder: shards have only
// features, and not the images on which such a model is checked.
func checkShardModels(e *definition.Experiment) error {
	if !e.KeepModels() {
		return nil
	}
	loaded, err := loadSpecs(e)
	if err != nil {
		return err
	}
	var errs diag.List
	for i := range e.Learners {
		for at, list := range loaded {
			if at.Learner != e.Learners[i].Name.V || !list[0].spec.Encodes() ||
				list[0].spec.Data.Encoder.Export.V != language.ExportJoined {
				continue
			}
			addOnce(&errs, e.ShowAt(list[0].name.Pos, "learner %q: shards cannot write models that contain an encoder, because "+
				"they have no images", at.Learner).
				WithNote("set: {data.encoder.export: model} writes models of features; or leave out keep: models"))
		}
	}
	return errs.Err()
}

// resolveAutoEngine determines the engine for auto on this machine if a cell uses auto.
func (d *ShardPlan) resolveAutoEngine(g *group, trainers *engines.Trainers) error {
	for _, c := range g.Cells {
		for _, point := range c.grid {
			if point.spec.Train.Engine.V == language.NoEngine ||
				cmp.Or(d.Engine, point.spec.Train.Engine.V, engines.Auto) != engines.Auto {
				continue
			}
			name, err := trainers.Engine(point.spec)
			d.Auto = name
			return err
		}
	}
	return nil
}

// count returns the number of shards for so many groups that take total seconds.
func (d Sharding) count(groups int, total float64) int {
	n := d.Shards
	if n == 0 {
		n = int(min(float64(shardsPerWorker*d.Workers), math.Ceil(total/leastSeconds)))
	}
	return min(max(n, 1), groups)
}

// assignGroups assigns the longest remaining group to the shard with the least work until no group is
// left, and sorts the shards by decreasing length, so that the last ones to end are short.
func assignGroups(groups []*group, n int) []shardGroups {
	longest := slices.Clone(groups)
	slices.SortStableFunc(longest, func(a, b *group) int { return cmp.Compare(b.Seconds, a.Seconds) })
	shards := make([]shardGroups, n)
	for _, g := range longest {
		least := &shards[0]
		for i := range shards {
			if shards[i].Seconds < least.Seconds || shards[i].Seconds == least.Seconds &&
				len(shards[i].Groups) < len(least.Groups) {
				least = &shards[i]
			}
		}
		least.Seconds += g.Seconds
		least.Groups = append(least.Groups, g)
	}
	slices.SortStableFunc(shards, func(a, b shardGroups) int { return cmp.Compare(b.Seconds, a.Seconds) })
	return shards
}

// Cells returns the number of cells in all shards and their total estimated seconds.
func (d *ShardPlan) Cells() (cells int, seconds float64) {
	for _, s := range d.Shards {
		seconds += s.Seconds
		for _, g := range s.Groups {
			cells += len(g.Cells)
		}
	}
	return cells, seconds
}

// write writes the plan to the folder, with its hash.
func (d *ShardPlan) write(dir string) error {
	text, err := json.Marshal(d)
	if err != nil {
		return err
	}
	d.ID = sumOf(text)[:12]
	return fileio.ReplaceJSON(filepath.Join(dir, ShardsFile), d)
}

// readShardPlan reads the plan that PlanShards wrote.
func readShardPlan(dir string) (*ShardPlan, error) {
	path := filepath.Join(dir, ShardsFile)
	d := &ShardPlan{}
	if err := fileio.ReadJSON(path, d); err != nil {
		return nil, err
	}
	for _, s := range d.Shards {
		if slices.Contains(s.Groups, nil) || slices.Contains(cellsOf(s.Groups), nil) {
			return nil, fmt.Errorf("%s is damaged: plan again", path)
		}
	}
	return d, nil
}
