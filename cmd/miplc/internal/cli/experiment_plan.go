// The command miplc experiment plan, which distributes an experiment over the tasks of a cluster.

package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/miplc/miplc/cmd/miplc/internal/console"
	"github.com/miplc/miplc/experiment"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/fileio"
	"github.com/miplc/miplc/runs"
)

// planOptions are the settings of miplc experiment plan.
type planOptions struct {
	experimentOptions
	experiment.Sharding
	Slurm, Kubernetes bool
	Template          string // file instead of the shipped one
	Job               experiment.JobOptions
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

--slurm writes DIR/job.sbatch, a job array whose tasks save their work and requeue themselves
before the time limit. --kubernetes writes DIR/job.yaml, an indexed Job. The command prints
how to submit and monitor the job, but does not submit it. docs/clusters.md has the details.

--template replaces this file by your own. Its values are Name, Title, JobName, Dir, Plan, Shards,
Tasks (of a Slurm array), Last (number of the last task, from 0), AtATime (tasks at the same
time), Logs, Binary, CPUs, GPUs, Memory, Partition, Account, Time, Image, Claim and SubPath (path
inside the claim). The functions sh, yaml and directive quote a value for a shell, for YAML and
for an #SBATCH line.`,
		Example: `  miplc experiment plan paper-benchmark -o table --slurm --workers 32 --time 02:00:00
  miplc experiment plan paper-benchmark -o table --kubernetes --image miplc:1 --claim data/table
  miplc experiment plan smoke -o smoke --shards 8
  for i in 1 2 3 4 5 6 7 8; do miplc experiment -o smoke --shard $i/8 & done; wait`,
		Args: console.Args(console.Arg("FILE", &o.File)),
		RunE: func(cmd *cobra.Command, _ []string) error { return runPlan(cmd.Context(), o) },
	}
	o.flags(cmd)
	o.jobFlags(cmd.Flags())
	return cmd
}

// jobFlags declares the flags of shards and of the job that computes them.
func (o *planOptions) jobFlags(f *pflag.FlagSet) {
	f.IntVar(&o.Shards, "shards", 0, "number of shards (default: 8 per worker, fewer if each would take less than a "+
		"few minutes)")
	f.IntVar(&o.Workers, "workers", 16, "number of processes that run at the same time")
	f.BoolVar(&o.Slurm, "slurm", false, "write DIR/job.sbatch, an array job for Slurm")
	f.BoolVar(&o.Kubernetes, "kubernetes", false, "write DIR/job.yaml, an indexed Job for Kubernetes")
	f.IntVar(&o.Job.MaxTasks, "max-tasks", experiment.DefaultMaxTasks,
		"maximum number of tasks of the Slurm array: MaxArraySize of the cluster minus 1. With more shards, each task "+
			"computes several")
	f.IntVar(&o.Job.CPUs, "cpus", 1, "cores per process")
	f.IntVar(&o.Job.GPUs, "gpus", 0, "GPUs per process; if above 0, the engine auto means xla")
	f.StringVar(&o.Job.Memory, "memory", "", "memory per process in the scheduler's notation, e.g. 4G (Slurm) or 4Gi "+
		"(Kubernetes)")
	f.StringVar(&o.Job.Partition, "partition", "", "Slurm partition")
	f.StringVar(&o.Job.Account, "account", "", "Slurm account")
	f.StringVar(&o.Job.Time, "time", "", "time limit of a Slurm task, e.g. 02:00:00")
	f.StringVar(&o.Job.Binary, "binary", "", "path of miplc on the Slurm nodes (default: this program)")
	f.StringVar(&o.Job.Image, "image", "", "container image that contains miplc, for Kubernetes")
	f.StringVar(&o.Job.Claim, "claim", "", "Kubernetes volume claim that contains DIR: NAME or NAME/PATH")
	f.StringVar(&o.Template, "template", "", "Go text/template that replaces the shipped job file")
	console.Limit(f, 1, maxShards, "shards", "workers", "max-tasks")
	console.Limit(f, 1, 4096, "cpus")
	console.Limit(f, 0, 64, "gpus")
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

	Job    string   `json:"job,omitempty"` // the file to submit
	Submit string   `json:"submit,omitempty"`
	Watch  []string `json:"watch"`
}

// runPlan plans the shards and prints the plan.
func runPlan(ctx context.Context, o *planOptions) error {
	if err := o.checkJob(); err != nil {
		return err
	}
	e, err := o.load(ctx)
	if err != nil {
		return err
	}
	settings := o.Work
	settings.Version = runs.CurrentBuild().Miplc
	count := o.Console.Counter("images encoded")
	settings.Encode = runs.EncodeWith(ctx, o.Library, count.Progress)
	o.Accelerated, o.Sharding.CPUs = o.Job.GPUs > 0, o.Job.CPUs
	shardPlan, err := experiment.PlanShards(e, settings, o.Sharding)
	count.End()
	if err != nil {
		return o.explain(err)
	}
	for _, text := range shardPlan.Warnings {
		o.Console.Notef("warning: %s", text)
	}
	p := planResult{Name: e.Name.V, Dir: o.Dir, ID: shardPlan.ID, Shards: len(shardPlan.Shards),
		Watch: []string{"miplc experiment status " + diag.ShellWord(o.Dir) + " --watch"}}
	p.Cells, p.Seconds = shardPlan.Cells()
	if p.Shards > 0 {
		p.Longest = shardPlan.Shards[0].Seconds
		if err := o.writeJob(&p); err != nil {
			return err
		}
	}
	return o.Console.Result(p, p.print)
}

// checkJob reports missing and conflicting flags of jobs.
func (o *planOptions) checkJob() error {
	switch {
	case o.Slurm && o.Kubernetes:
		return console.Usagef("miplc experiment plan: --slurm and --kubernetes exclude each other: give only one of them")
	case o.Template != "" && !o.Slurm && !o.Kubernetes:
		return console.Usagef("miplc experiment plan: --template replaces a job file: give --slurm or --kubernetes too")
	case o.Kubernetes && (o.Job.Image == "" || o.Job.Claim == ""):
		return console.Usagef("miplc experiment plan: --kubernetes needs --image, a container image with miplc, and "+
			"--claim, the volume claim that contains %s", cmp.Or(o.Dir, "DIR"))
	}
	return console.Invalid(o.Job.Check())
}

// writeJob writes the job file and notes how to submit and watch it.
func (o *planOptions) writeJob(p *planResult) error {
	if !o.Slurm && !o.Kubernetes {
		return nil
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return err
	}
	job := experiment.Job{JobOptions: o.Job, Name: p.Name, Dir: dir, Plan: p.ID, Shards: p.Shards}
	job.Workers = o.Workers
	if job.Binary == "" {
		if job.Binary, err = os.Executable(); err != nil {
			return err
		}
	}
	name, fill := experiment.SlurmFile, experiment.SlurmJob
	if o.Kubernetes {
		name, fill = experiment.KubernetesFile, experiment.KubernetesJob
	}
	if o.Template != "" {
		own, err := fileio.ReadAtMost(o.Template, maxTemplate, "a template of a job")
		if err != nil {
			return err
		}
		fill = func(j experiment.Job) ([]byte, error) { return experiment.FillJob(o.Template, string(own), j) }
	}
	text, err := fill(job)
	if err != nil {
		return console.Invalid(err)
	}
	p.Job = filepath.Join(o.Dir, name)
	if o.Kubernetes {
		p.Submit = "kubectl apply -f " + diag.ShellWord(p.Job)
		p.Watch = append(p.Watch, "kubectl get job "+job.JobName()+" --watch")
	} else {
		p.Submit = "sbatch " + diag.ShellWord(p.Job)
		p.Watch = append(p.Watch, "squeue --me --name "+job.JobName())
		if err := os.MkdirAll(filepath.Join(o.Dir, experiment.LogsFolder), 0o777); err != nil {
			return err
		}
	}
	return fileio.Replace(p.Job, text)
}

// maxTemplate bounds the size of a template, which has a few kilobytes.
const maxTemplate = 1 << 20

func (p *planResult) print(w io.Writer) {
	if p.Shards == 0 {
		diag.Fprintf(w, "%s: all cells are done. Tables and figures: miplc report %s\n", p.Name, diag.ShellWord(p.Dir))
		return
	}
	submit := p.Submit
	if submit == "" {
		submit = fmt.Sprintf("miplc experiment -o %s --shard I/%d for every I", diag.ShellWord(p.Dir), p.Shards)
	}
	diag.Fprintf(w, "%s: %s in %s, about %s of one core, the longest shard %s\nsubmit with: %s\n",
		p.Name, diag.Count(p.Cells, "cell"), diag.Count(p.Shards, "shard"), span(p.Seconds), span(p.Longest), submit)
	for _, command := range p.Watch {
		diag.Fprintf(w, "watch with:  %s\n", command)
	}
}

// span formats estimated seconds.
func span(seconds float64) string {
	return console.FormatDuration(time.Duration(seconds * float64(time.Second)))
}
