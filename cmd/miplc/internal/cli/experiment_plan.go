// The command miplc experiment plan, which distributes an experiment over the tasks of a cluster.

package cli

import (
	"context"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/miplc/miplc/cmd/miplc/internal/console"
	"github.com/miplc/miplc/experiment"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/runs/prepare"
)

// planOptions are the settings of miplc experiment plan.
type planOptions struct {
	experimentOptions
	experiment.Sharding
}

func planCommand(con *console.Console) *cobra.Command {
	o := &planOptions{experimentOptions: experimentOptions{Console: con}}
	cmd := &cobra.Command{
		Use:   "plan FILE -o DIR",
		Short: "Prepare an experiment for processes on many machines",
		Long: `Divide an experiment into shards, which separate processes compute. A cell is one training
and test of the experiment, a shard is a group of cells. The command generates the datasets,
copies all files that cells need and the onnxruntime library to DIR, chooses the engine, and
assigns the unfinished cells to shards by their estimated time. Cells that a GPU trains
together stay in one shard.

If FILE, its specs or its datasets have errors, the command reports them, plans nothing, and
exits with code 1 or 2.

Each process needs only DIR and the binary: miplc experiment -o DIR --shard I/N. If shards
fail, plan again when none is running: only the cells without a result are assigned.

examples/slurm and examples/kubernetes in the repository have jobs that compute all shards on
a cluster, with the variables MIPLC_SHARDS and MIPLC_PLAN that this command prints.
docs/clusters.md has the details. If only the other machines have a GPU, give --engine xla.`,
		Example: `  miplc experiment plan paper-benchmark -o table --workers 32 --cpus 2
  miplc experiment plan smoke -o smoke --shards 8
  for i in 1 2 3 4 5 6 7 8; do miplc experiment -o smoke --shard $i/8 & done; wait`,
		Args: console.Args(console.Arg("FILE", &o.File)),
		RunE: func(cmd *cobra.Command, _ []string) error { return runPlan(cmd.Context(), o) },
	}
	o.flags(cmd)
	f := cmd.Flags()
	f.IntVar(&o.Shards, "shards", 0, "number of shards (default: 8 per worker, fewer if each would take less than a "+
		"few minutes)")
	f.IntVar(&o.Workers, "workers", 16, "number of processes that run at the same time")
	f.IntVar(&o.CPUs, "cpus", 1, "cores per process")
	console.Limit(f, 1, maxShards, "shards", "workers")
	console.Limit(f, 1, 4096, "cpus")
	return cmd
}

// maxShards is more than schedulers accept in one job.
const maxShards = 100_000

// planResult is the output of the command.
type planResult struct {
	Name    string  `json:"name"`
	Dir     string  `json:"dir"`
	ID      string  `json:"id"`
	Cells   int     `json:"cells"` // remaining cells
	Shards  int     `json:"shards"`
	Seconds float64 `json:"seconds"` // estimated, on one core
	Longest float64 `json:"longest"` // longest shard
}

// runPlan plans the shards and prints the plan.
func runPlan(ctx context.Context, o *planOptions) error {
	e, err := o.load(ctx)
	if err != nil {
		return err
	}
	settings := o.Work
	count := o.Console.Counter("images encoded")
	settings.Encode = prepare.EncodeWith(ctx, count.Progress)
	shardPlan, err := experiment.PlanShards(e, settings, o.Sharding)
	count.End()
	if err != nil {
		return o.explain(err)
	}
	for _, text := range shardPlan.Warnings {
		o.Console.Notef("warning: %s", text)
	}
	p := planResult{Name: e.Name.V, Dir: o.Dir, ID: shardPlan.ID, Shards: len(shardPlan.Shards)}
	p.Cells, p.Seconds = shardPlan.Cells()
	if p.Shards > 0 {
		p.Longest = shardPlan.Shards[0].Seconds
	}
	return o.Console.Result(p, p.print)
}

func (p *planResult) print(w io.Writer) {
	dir := diag.ShellWord(p.Dir)
	if p.Shards == 0 {
		diag.Fprintf(w, "%s: all cells are done. Tables and figures: miplc report %s\n", p.Name, dir)
		return
	}
	diag.Fprintf(w, "%s: %s in %s, about %s of one core, the longest shard %s\n", p.Name, diag.Count(p.Cells, "cell"),
		diag.Count(p.Shards, "shard"), span(p.Seconds), span(p.Longest))
	diag.Fprintf(w, "for every I: miplc experiment -o %s --shard I/%d\n", dir, p.Shards)
	diag.Fprintf(w, "for a job:   export %s=%d %s=%s\n", experiment.EnvShards, p.Shards, experiment.EnvPlan, p.ID)
	diag.Fprintf(w, "progress:    miplc experiment status %s --watch\n", dir)
}

// span formats estimated seconds.
func span(seconds float64) string {
	return console.FormatDuration(time.Duration(seconds * float64(time.Second)))
}
