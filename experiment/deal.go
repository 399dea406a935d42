package experiment

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"slices"

	"github.com/miplc/miplc/experiment/definition"
	"github.com/miplc/miplc/internal/infile"
	"github.com/miplc/miplc/internal/outfile"
	"github.com/miplc/miplc/train/engines"
)

// Deal is the cells of an experiment that had no result when it was planned, dealt
// to processes that need nothing but the folder it lies in. DealFile holds it.
type Deal struct {
	ID         string `json:"id"`                // hash of all below
	Experiment string `json:"experiment_sha256"` // of SpecFile
	Name       string `json:"name"`
	Miplc      string `json:"miplc"` // version that planned

	Engine  string  `json:"engine,omitempty"` // of all cells; empty: as the specs say
	Device  string  `json:"device,omitempty"`
	Auto    string  `json:"auto,omitempty"` // engine that auto stands for in specs
	Beside  int     `json:"beside"`         // trainings in one program at most
	CPUs    int     `json:"cpus,omitempty"` // cores of a process; 0: not known
	Library *staged `json:"library,omitempty"`

	Sets    []dealtSet     `json:"sets"`
	Choices []dealtChoices `json:"choices"`
	Shards  []dealtShard   `json:"shards"` // the longest first
}

// dealtShard is what one process computes.
type dealtShard struct {
	Seconds float64  `json:"seconds"` // of one core, or of the device; estimated
	Groups  []*group `json:"groups"`  // the longest first
}

// Dealing says how cells are dealt.
type Dealing struct {
	Shards  int // 0: some for each worker, if they have some minutes each
	Workers int // processes at a time
	CPUs    int // cores of a process; 0: not known
	// Accelerated workers have a GPU, which the machine that plans may lack.
	Accelerated bool
}

// Shards that the scheduler's queue balances the workers with, and what a start of
// a process should be worth.
const (
	shardsPerWorker = 8
	leastSeconds    = 300
)

// PlanShards writes the plan of an experiment and deals the cells that have no result to
// processes: RunShard computes those of one. All that they need is put into the
// folder, the engine is settled. Errors are those of Run. A deal without shards says
// that all cells are done.
func PlanShards(e *definition.Experiment, o Options, d Dealing) (*Deal, error) {
	if d.Accelerated {
		o.Auto = engines.XLA
	}
	r, err := newRunner(e, o)
	if err != nil {
		return nil, err
	}
	defer r.close()
	deal := &Deal{Experiment: r.plan.SHA256, Name: r.plan.Name, Miplc: o.Version, Engine: o.Engine, Device: o.Device, Auto: o.Auto, Beside: r.beside, CPUs: d.CPUs}
	costs := measureCosts(cellsOf(r.groups), r.have)
	groups := unfinished(r.groups, r.have)
	for _, g := range groups {
		for _, c := range g.Cells {
			g.Seconds += costs.of(c)
		}
		if deal.Auto == "" {
			if err := deal.settleAuto(g, r.trainers); err != nil {
				return nil, err
			}
		}
	}
	n := d.count(groups)
	total := 0.0
	for _, g := range groups {
		total += g.Seconds
	}
	groups = divided(groups, func(g *group) int { // enough for all shards and their cores
		return int(math.Ceil(g.Seconds / total * float64(n*max(1, d.CPUs))))
	})
	deal.Shards = dealOut(groups, min(n, len(groups)))
	if err := deal.stage(o, r.plan, groups); err != nil {
		return nil, err
	}
	return deal, deal.write(o.Dir)
}

// settleAuto finds what auto stands for on this machine where a cell asks for it.
func (d *Deal) settleAuto(g *group, trainers *engines.Trainers) error {
	for _, c := range g.Cells {
		for _, choice := range c.candidates {
			if !choice.spec.TakesEngine() || cmp.Or(d.Engine, choice.spec.Train.Engine.V, engines.Auto) != engines.Auto {
				continue
			}
			name, err := trainers.Engine(choice.spec)
			d.Auto = name
			return err
		}
	}
	return nil
}

// count is how many shards there are to be.
func (d Dealing) count(groups []*group) int {
	n := d.Shards
	if n == 0 {
		total := 0.0
		for _, g := range groups {
			total += g.Seconds
		}
		n = int(min(float64(shardsPerWorker*d.Workers), math.Ceil(total/leastSeconds)))
	}
	most := 0 // groups that divided can make
	for _, g := range groups {
		if g.Coupled {
			most++
		} else {
			most += max(1, len(g.Cells))
		}
	}
	return min(max(n, 1), most)
}

// dealOut returns the longest group that is left to the shard with the least, n times
// over, and puts the longest shards first: so the last to end are short.
func dealOut(groups []*group, n int) []dealtShard {
	longest := slices.Clone(groups)
	slices.SortStableFunc(longest, func(a, b *group) int { return cmp.Compare(b.Seconds, a.Seconds) })
	shards := make([]dealtShard, n)
	for _, g := range longest {
		least := &shards[0]
		for i := range shards {
			if shards[i].Seconds < least.Seconds || shards[i].Seconds == least.Seconds && len(shards[i].Groups) < len(least.Groups) {
				least = &shards[i]
			}
		}
		least.Seconds += g.Seconds
		least.Groups = append(least.Groups, g)
	}
	slices.SortStableFunc(shards, func(a, b dealtShard) int { return cmp.Compare(b.Seconds, a.Seconds) })
	return shards
}

// Cells counts those of all shards; Seconds are what they take together.
func (d *Deal) Cells() (cells int, seconds float64) {
	for _, s := range d.Shards {
		seconds += s.Seconds
		for _, g := range s.Groups {
			cells += len(g.Cells)
		}
	}
	return cells, seconds
}

// write puts the deal into the folder, with its hash.
func (d *Deal) write(dir string) error {
	text, err := json.Marshal(d)
	if err != nil {
		return err
	}
	d.ID = fmt.Sprintf("%x", sha256.Sum256(text))[:12]
	return outfile.ReplaceJSON(filepath.Join(dir, DealFile), d)
}

// readDeal reads what PlanShards wrote.
func readDeal(dir string) (*Deal, error) {
	path := filepath.Join(dir, DealFile)
	d := &Deal{}
	if err := infile.JSON(path, d); err != nil {
		return nil, err
	}
	for _, s := range d.Shards {
		if slices.Contains(s.Groups, nil) || slices.Contains(cellsOf(s.Groups), nil) {
			return nil, fmt.Errorf("%s is damaged: plan again", path)
		}
	}
	return d, nil
}
