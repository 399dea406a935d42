package experiment

import (
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/miplc/miplc/cmd/miplc/internal/console"
	"github.com/miplc/miplc/experiment"
	"github.com/miplc/miplc/internal/plain"
)

// planOptions are the settings of miplc experiment plan.
type planOptions struct {
	options
	experiment.Dealing
}

func planCommand(con *console.Console) *cobra.Command {
	o := &planOptions{options: options{Console: con}}
	cmd := &cobra.Command{
		Use:   "plan FILE -o DIR",
		Short: "Deal the cells of an experiment to processes on many machines",
		Long: `Make DIR ready for processes that each compute a part of the experiment: draw the
data sets, take along other files that the cells need and the onnxruntime library,
settle the engine, and deal the cells that have no result to shards, by what they
are likely to take: as finished ones of their learner and data set did, else as
their sizes say. Cells that share a program on a GPU stay together; short ones are
bundled to shards of some minutes.

The processes need DIR and the binary alone: miplc experiment -o DIR --shard I/N.
Planning again after losses deals what is missing.`,
		Example: `  miplc experiment plan smoke -o smoke --shards 8
  for i in 1 2 3 4 5 6 7 8; do miplc experiment -o smoke --shard $i/8; done`,
		Args: console.Args("FILE"),
		RunE: func(_ *cobra.Command, args []string) error {
			o.File = args[0]
			return runPlan(o)
		},
	}
	o.flags(cmd)
	f := cmd.Flags()
	f.IntVar(&o.Shards, "shards", 0, "parts to deal the cells to, by default eight for each worker, if they take some minutes each")
	f.IntVar(&o.Workers, "workers", 16, "processes at the same time")
	console.Limit(f, 0, maxShards, "shards")
	console.Limit(f, 1, maxShards, "workers")
	return cmd
}

// maxShards is more than schedulers take in one job.
const maxShards = 100_000

// planned is what the command prints.
type planned struct {
	Name    string  `json:"name"`
	Dir     string  `json:"dir"`
	ID      string  `json:"id"`
	Cells   int     `json:"cells"` // that are left
	Shards  int     `json:"shards"`
	Seconds float64 `json:"seconds"` // of one core, estimated
	Longest float64 `json:"longest"` // of the shards
}

// runPlan deals the cells.
func runPlan(o *planOptions) error {
	e, err := o.load()
	if err != nil {
		return err
	}
	deal, err := experiment.PlanShards(e, o.settings(), o.Dealing)
	if err != nil {
		return o.explain(err)
	}
	p := planned{Name: e.Name.V, Dir: o.Dir, ID: deal.ID, Shards: len(deal.Shards)}
	p.Cells, p.Seconds = deal.Cells()
	if p.Shards > 0 {
		p.Longest = deal.Shards[0].Seconds
	}
	return o.Console.Result(p, func(w io.Writer) error { return p.print(w) })
}

func (p *planned) print(w io.Writer) error {
	if p.Shards == 0 {
		_, err := plain.Fprintf(w, "%s: all cells are done. Tables and figures: miplc report %s\n", p.Name, p.Dir)
		return err
	}
	_, err := plain.Fprintf(w, "%s: %d cells in %d shards, about %s of one core, the longest shard %s\n"+
		"compute shard I with: miplc experiment -o %s --shard I/%d\n", p.Name, p.Cells, p.Shards, span(p.Seconds), span(p.Longest), p.Dir, p.Shards)
	return err
}

// span prints seconds for people.
func span(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	if d < time.Minute {
		return d.Round(time.Second).String()
	}
	return strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
}
