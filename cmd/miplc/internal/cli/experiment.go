// The command miplc experiment.

package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/miplc/miplc/cmd/miplc/internal/console"
	"github.com/miplc/miplc/experiment"
	"github.com/miplc/miplc/experiment/definition"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/onnxruntime"
	"github.com/miplc/miplc/runs/prepare"
	"github.com/miplc/miplc/specs"
	"github.com/miplc/miplc/train"
)

// experimentOptions are the settings of the commands that compute or plan cells.
type experimentOptions struct {
	Console *console.Console
	File    string
	Set     []string
	Library string // onnxruntime library; empty: search
	experiment.Work
	Shard  string
	Events bool
}

// experimentCommand returns the command with its subcommands.
func experimentCommand(con *console.Console) *cobra.Command {
	o := &experimentOptions{Console: con}
	cmd := &cobra.Command{
		Use:        "experiment FILE -o DIR",
		SuggestFor: []string{"benchmark", "bench", "sweep", "tune"},
		Short:      "Compare learners over datasets and splits, resumable",
		Long: fmt.Sprintf(`Train and test several learners (specs, perhaps with other settings) on the same datasets and
splits. FILE is the path of a YAML file or the name of a shipped experiment:
%s.
This file compares two learners on a CSV file of yours:

  name: compare
  data:
    - {name: mine, file: my.csv}
  learners:
    - {name: DEMIPL, spec: demipl-mlp}
    - {name: PRODEN on bag means, spec: proden-mean}
  splits: {count: 5}

Each combination of dataset, r (number of false labels), learner and split is one cell.

The results, one line per finished cell, and the generated datasets are written to DIR. To
continue after an interruption or a crash, run the same command again: finished cells are
kept, and the results are those of an uninterrupted experiment. After Ctrl-C or SIGTERM the
command saves the progress of unfinished cells and exits with code 75. If a cell fails, the
others continue; the command exits with code 1, and the next start retries the cell. Errors
in FILE, its specs and its datasets stop the command before the first cell.

--data, --learner, --r and --splits select cells; a later start may select others. At any
time, miplc report DIR writes tables and figures.

--shard computes one shard of the plan that miplc experiment plan wrote to DIR. Any
number of such processes may run on any machines that share the folder. I/N is shard I
(from 1) of N; auto reads it from the Slurm or Kubernetes job. Give no FILE with --shard: the
plan determines the cells and the engine.

docs/experiments.md describes FILE; docs/clusters.md describes shards.`, strings.Join(specs.Experiments(), ", ")),
		Example: `  miplc experiment compare.yaml -o compare
  miplc report compare
  miplc experiment smoke -o smoke
  miplc experiment paper-benchmark -o benchmark --data-dir data --data Birdsong-MIPL --splits 3
  miplc experiment -o benchmark --shard 3/16`,
		Args: console.Args(console.Arg("[FILE]", &o.File)),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Shard != "" {
				return runShard(cmd, o)
			}
			return runExperiment(cmd.Context(), o)
		},
	}
	o.flags(cmd)
	cmd.Flags().StringVar(&o.Shard, "shard", "", "shard of the plan in DIR to compute: I/N, or auto inside a Slurm or "+
		"Kubernetes job")
	console.EventsFlag(cmd.Flags(), &o.Events)
	cmd.AddCommand(planCommand(con), statusCommand(con))
	return cmd
}

// flags declares the flags of commands that plan an experiment.
func (o *experimentOptions) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	console.OutputFlag(cmd, &o.Dir, "DIR", "folder of the results")
	f.StringArrayVar(&o.Set, "set", nil, "override of a value of the file, e.g. splits.count=3 (repeatable)")
	console.DataFlags(o.Console, f, &o.Data, "folder of datasets and labelled instances (default: $MIPLC_DATA)")
	placeFlags(o.Console, f, &o.Place, "engine of all cells")
	console.LibraryFlag(f, &o.Library)
	f.IntVar(&o.Parallel, "jobs", 0, fmt.Sprintf("number of cells that train at the same time (default: the number of "+
		"cores; %d for the engine xla)", train.MaxGroup))
	f.StringSliceVar(&o.Select.Data, "data", nil, "names of the datasets to run (default: all)")
	f.StringSliceVar(&o.Select.Learners, "learner", nil, "names of the learners to run (default: all)")
	f.IntSliceVar(&o.Select.R, "r", nil, "values of r to run (default: all)")
	f.IntVar(&o.Select.Splits, "splits", 0, "number of splits to run, from the first (default: all)")
	console.Limit(f, 0, 4096, "jobs")
	console.Limit(f, 0, 1000, "r", "splits")
}

// runExperiment runs the remaining cells.
func runExperiment(ctx context.Context, o *experimentOptions) error {
	e, err := o.load(ctx)
	if err != nil {
		return err
	}
	return o.follow(ctx, e.Name.V, func(settings experiment.Work) (experiment.Progress, error) {
		return experiment.Run(ctx, e, settings)
	})
}

// ofShard are the flags that a shard accepts; the plan determines all others.
var ofShard = []string{"shard", "output", "library", "jobs", "max-bytes", "device-memory", "json", "events"}

// runShard computes one shard.
func runShard(cmd *cobra.Command, o *experimentOptions) error {
	var fixed []string
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if !slices.Contains(ofShard, f.Name) {
			fixed = append(fixed, "--"+f.Name)
		}
	})
	switch {
	case o.File != "":
		return console.Usagef("miplc experiment --shard runs the experiment that was planned in %s: omit %s", o.Dir, o.File)
	case len(fixed) > 0:
		return console.Usagef("miplc experiment --shard: the plan in %[2]s determines %[1]s; plan again to change it",
			strings.Join(fixed, ", "), o.Dir)
	}
	shard, err := experiment.ParseShard(o.Shard, o.Console.Getenv)
	if err != nil {
		return diag.Invalid(err)
	}
	if o.Library != "" {
		if _, err := onnxruntime.Start(o.Library); err != nil {
			return err
		}
	}
	return o.follow(cmd.Context(), fmt.Sprintf("shard %d of %d", shard.I, shard.N),
		func(settings experiment.Work) (experiment.Progress, error) {
			return experiment.RunShard(cmd.Context(), shard, settings)
		})
}

// follow runs cells, shows their progress and prints the summary.
func (o *experimentOptions) follow(ctx context.Context, name string,
	compute func(experiment.Work) (experiment.Progress, error)) error {
	settings := o.Work
	count := o.Console.Counter("images encoded")
	defer count.End()
	settings.Encode = prepare.EncodeWith(ctx, count.Progress)
	switch {
	case o.Events:
		settings.Observer = experimentEvents{console.NewEvents(o.Console)}
	case !o.Console.JSON:
		shown := experimentLines{console.NewLine(o.Console.Err, o.Console.Terminal), count}
		defer shown.End()
		settings.Observer = shown
	}
	o.Console.AllowAfterSignal(console.LastEpochs, console.ExitInterrupted)
	progress, err := compute(settings)
	if err != nil {
		return o.explain(err)
	}
	return o.Console.Resultf(struct {
		Name string `json:"name"`
		Dir  string `json:"dir"`
		experiment.Progress
	}{name, o.Dir, progress}, "%s: %d of %s done. Tables and figures: miplc report %s\n",
		name, progress.Done, diag.CountForms(progress.Cells, "cell is", "cells are"), diag.ShellWord(o.Dir))
}

// load checks the flags, reads the file and loads onnxruntime.
func (o *experimentOptions) load(ctx context.Context) (*definition.Experiment, error) {
	if o.File == "" {
		return nil, console.Usagef("miplc experiment: FILE is missing; shipped ones are %s", strings.Join(specs.Experiments(),
			", "))
	}
	e, err := experiment.Load(o.File, o.Set...)
	if err != nil && definition.IsSpec(o.File) {
		return nil, console.Usagef("miplc experiment: %s is the spec of one model: run miplc train %[1]s -o DIR, or name "+
			"it in the learners of an experiment", o.File)
	}
	if err != nil {
		return nil, diag.Invalid(err)
	}
	return e, ensureLibrary(ctx, o.Console, o.Library, e.KeepModels())
}

// explain marks errors of data, and adds the command that continues.
func (o *experimentOptions) explain(err error) error {
	var stopped *experiment.InterruptedError
	switch {
	case errors.As(err, new(*experiment.DataError)):
		return console.WrongData(err)
	case errors.As(err, &stopped):
		return console.Interrupted(fmt.Errorf("%w\ncontinue with the same command", err))
	}
	return err
}
