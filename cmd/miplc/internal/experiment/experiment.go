// Package experiment is the command miplc experiment.
package experiment

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/miplc/miplc/cmd/miplc/internal/backend"
	"github.com/miplc/miplc/cmd/miplc/internal/console"
	"github.com/miplc/miplc/cmd/miplc/internal/version"
	"github.com/miplc/miplc/experiment"
	"github.com/miplc/miplc/runs"
	"github.com/miplc/miplc/specs"
)

// options are the settings of the commands that compute or plan cells.
type options struct {
	Console *console.Console
	File    string
	Set     []string
	experiment.Options
	Shard string
}

// Command makes the command with those below it.
func Command(con *console.Console) *cobra.Command {
	o := &options{Console: con}
	cmd := &cobra.Command{
		Use:   "experiment FILE -o DIR",
		Short: "Run learners over data sets and splits; go on where it was stopped",
		Long: fmt.Sprintf(`Run the experiment of a YAML file: every data set, number r of false positive
labels, learner and split is one cell. FILE is a path or the name of a shipped
experiment: %s.

DIR gets the results, one line per finished cell, and the data sets that are
drawn. Ctrl-C, or even a crash, loses no finished cell: the same command goes on
where it was and ends with the same results. Ctrl-C and SIGTERM end it with exit code
75, with the epochs of the cells under way kept. A cell that fails is noted with its
message, the others go on, and the next start tries it again.

In the engine xla the splits, r and settings of a learner train side by side in one
program; in the others as many cells at a time as there are cores.

--data, --learner, --r and --splits run a part of the cells; later starts may run
others. miplc report DIR makes tables and figures at any time.

With --shard the process computes one of the parts that miplc experiment plan has
dealt in DIR, beside any number of others on any machines that see the folder. FILE
and all that chooses cells and engines is then the plan's and left out. I/N is part
I, from 1, of N; auto takes it from the job of Slurm or Kubernetes.`, strings.Join(specs.Experiments(), ", ")),
		Example: `  miplc experiment smoke -o smoke
  miplc experiment paper-benchmark -o benchmark --data-dir data --data Birdsong-MIPL --splits 3
  miplc experiment -o benchmark --shard 3/16
  miplc report benchmark`,
		Args: console.Args(console.Arg("[FILE]", &o.File)),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Shard != "" {
				return runShard(cmd, o)
			}
			return run(cmd.Context(), o)
		},
	}
	o.flags(cmd)
	cmd.Flags().StringVar(&o.Shard, "shard", "", "compute one part of the plan in DIR: I/N, or auto in a job")
	cmd.AddCommand(planCommand(con), statusCommand(con))
	return cmd
}

// flags declares those of commands that settle the plan of an experiment.
func (o *options) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVarP(&o.Dir, "output", "o", "", "folder of the results (required)")
	f.StringArrayVar(&o.Set, "set", nil, "override a value of the file, e.g. splits.count=3 (may be repeated)")
	console.DataFlags(o.Console, f, &o.Data, "folder of data sets and of labelled instances")
	backend.EngineFlags(f, &o.Request, "engine of all cells")
	f.IntVar(&o.Jobs, "jobs", 0, "cells at the same time, one thread each, by default as many as cores; with the engine xla side by side in one program, by default 64")
	f.StringSliceVar(&o.Select.Data, "data", nil, "data sets to run, by name; all others are left out")
	f.StringSliceVar(&o.Select.Learners, "learner", nil, "learners to run, by name")
	f.IntSliceVar(&o.Select.R, "r", nil, "numbers of false positive labels to run")
	f.IntVar(&o.Select.Splits, "splits", 0, "splits to run, the first ones; 0: all")
	console.Limit(f, 0, 4096, "jobs")
	console.Limit(f, 0, 1000, "r", "splits")
}

// summary is what the command prints.
type summary struct {
	Name string `json:"name"`
	Dir  string `json:"dir"`
	experiment.Progress
}

// run runs the cells that are left.
func run(ctx context.Context, o *options) error {
	e, err := o.load()
	if err != nil {
		return err
	}
	if e.KeepModels {
		if err := backend.EnsureLibrary(ctx, o.Console, o.Library); err != nil {
			return err
		}
	}
	return o.follow(e.Name.V, func(settings experiment.Options) (experiment.Progress, error) {
		return experiment.Run(ctx, e, settings)
	})
}

// ofShard are the flags that a shard takes; all others are settled by the plan.
var ofShard = []string{"shard", "output", "library", "jobs", "max-bytes", "device-memory", "json"}

// runShard computes one shard.
func runShard(cmd *cobra.Command, o *options) error {
	var settled []string
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if !slices.Contains(ofShard, f.Name) {
			settled = append(settled, "--"+f.Name)
		}
	})
	switch {
	case o.Dir == "":
		return console.Usagef("miplc experiment: -o DIR is missing")
	case o.File != "":
		return console.Usagef("miplc experiment --shard takes the experiment that was planned in %s: leave %s out", o.Dir, o.File)
	case len(settled) > 0:
		return console.Usagef("miplc experiment --shard: %s is settled by the plan in %s; plan again to change it", strings.Join(settled, ", "), o.Dir)
	}
	shard, err := experiment.ParseShard(o.Shard, o.Console.Getenv)
	if err != nil {
		return console.Invalid(err)
	}
	return o.follow(fmt.Sprintf("shard %d of %d", shard.I, shard.N), func(settings experiment.Options) (experiment.Progress, error) {
		return experiment.RunShard(cmd.Context(), shard, settings)
	})
}

// follow shows the computing of cells and tells how it ended.
func (o *options) follow(name string, compute func(experiment.Options) (experiment.Progress, error)) error {
	settings := o.Options
	settings.Version = version.Current().Miplc
	if !o.Console.JSON {
		lines := newLines(o.Console.Err, o.Console.Terminal)
		defer lines.End()
		settings.Observer = lines
	}
	o.Console.Keep(console.LastEpochs, console.ExitInterrupted)
	progress, err := compute(settings)
	if err != nil {
		return o.explain(err)
	}
	return o.Console.Resultf(summary{name, o.Dir, progress}, "%s: %d of %d cells are done. Tables and figures: miplc report %s\n", name, progress.Done, progress.Cells, o.Dir)
}

// load reads the file and checks the flags.
func (o *options) load() (*experiment.Experiment, error) {
	if o.File == "" {
		return nil, console.Usagef("miplc experiment: FILE is missing; shipped ones are %s", strings.Join(specs.Experiments(), ", "))
	}
	if o.Dir == "" {
		return nil, console.Usagef("miplc experiment: -o DIR is missing")
	}
	if err := backend.CheckEngine(&o.Request); err != nil {
		return nil, err
	}
	e, err := experiment.Load(o.File, o.Set...)
	return e, console.Invalid(err)
}

// explain adds the exit code of a wrong file or plan, and how to go on.
func (o *options) explain(err error) error {
	var wrong *runs.SpecError
	var unfit *experiment.PlanError
	var stopped *experiment.InterruptedError
	switch {
	case errors.As(err, &wrong):
		return console.Invalid(wrong.Err)
	case errors.As(err, &unfit):
		return console.Invalid(unfit.Err)
	case errors.As(err, &stopped) && o.Shard != "":
		return console.Interrupted(fmt.Errorf("%w\ngo on with the same command", err))
	case errors.As(err, &stopped):
		return console.Interrupted(fmt.Errorf("%w\ngo on with: miplc experiment %s -o %s", err, o.File, o.Dir))
	}
	return err
}
