// Package experiment is the command miplc experiment.
package experiment

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/miplc/miplc/cmd/miplc/internal/backend"
	"github.com/miplc/miplc/cmd/miplc/internal/console"
	"github.com/miplc/miplc/cmd/miplc/internal/version"
	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/experiment"
	"github.com/miplc/miplc/internal/plain"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/runs"
	"github.com/miplc/miplc/specs"
	"github.com/miplc/miplc/train/engines"
)

// options are the settings of the command.
type options struct {
	Console *console.Console
	File    string
	Set     []string
	Dir     string
	Data    data.Folder
	Library string
	Engine  string
	Device  string
	Memory  int64
	Jobs    int
	Select  experiment.Select
}

// Command makes the command.
func Command(con *console.Console) *cobra.Command {
	o := &options{Console: con}
	cmd := &cobra.Command{
		Use:   "experiment FILE -o DIR",
		Short: "Run learners over data sets and splits; go on where it was stopped",
		Long: fmt.Sprintf(`Run the experiment of a YAML file: every data set, number r of false positive
labels, learner and split is one cell. FILE is a path or the name of a shipped
experiment: %s.

DIR gets results.jsonl, one line per finished cell, and the data sets that are
drawn. Ctrl-C, or even a crash, loses no finished cell: the same command goes on
where it was and ends with the same results. A cell that fails is noted with its
message, the others go on, and the next start tries it again.

On a GPU (engine xla) the splits, r and settings of a learner train side by side
in one program; on a CPU as many cells as there are cores.

--data, --learner, --r and --splits run a part of the cells; later starts may run
others. miplc report DIR makes tables and figures at any time.`, strings.Join(specs.Experiments(), ", ")),
		Example: `  miplc experiment smoke -o smoke
  miplc experiment paper-benchmark -o benchmark --data-dir data --data Birdsong-MIPL --splits 3
  miplc report benchmark`,
		Args: console.Args("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.File = args[0]
			return run(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&o.Dir, "output", "o", "", "folder of the results (required)")
	f.StringArrayVar(&o.Set, "set", nil, "override a value of the file, e.g. splits.count=3 (may be repeated)")
	console.DataFlags(con, f, &o.Data, "folder of data sets and of labelled instances")
	f.StringVar(&o.Library, "library", "", "onnxruntime library, or a folder that holds it")
	f.StringVar(&o.Engine, "engine", "", "engine of all cells: "+strings.Join(engines.Names(), ", "))
	f.StringVar(&o.Device, "device", "", "cpu, cuda for an NVIDIA GPU, or go for the executor in pure Go of the engine xla")
	console.MemoryFlag(f, &o.Memory)
	f.IntVar(&o.Jobs, "jobs", 0, "cells at the same time, one thread each, by default as many as cores; with the engine xla side by side in one program, by default 64")
	f.StringSliceVar(&o.Select.Data, "data", nil, "data sets to run, by name; all others are left out")
	f.StringSliceVar(&o.Select.Learners, "learner", nil, "learners to run, by name")
	f.IntSliceVar(&o.Select.R, "r", nil, "numbers of false positive labels to run")
	f.IntVar(&o.Select.Splits, "splits", 0, "splits to run, the first ones; 0: all")
	console.Limit(f, 0, 4096, "jobs")
	console.Limit(f, 0, 1000, "r", "splits")
	return cmd
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
	options := experiment.Options{
		Dir: o.Dir, Data: o.Data, Library: o.Library, Version: version.Current().Miplc,
		Engine: o.Engine, Device: o.Device, Memory: o.Memory, Jobs: o.Jobs, Select: o.Select,
	}
	if !o.Console.JSON {
		lines := newLines(o.Console.Err, o.Console.Terminal)
		defer lines.close()
		options.Observer = lines
	}
	o.Console.Keep(console.LastEpochs)
	progress, err := experiment.Run(ctx, e, options)
	if err != nil {
		return o.explain(err)
	}
	s := summary{e.Name.V, o.Dir, progress}
	return o.Console.Result(s, func(w io.Writer) error {
		_, err := plain.Fprintf(w, "%s: %d of %d cells are done. Tables and figures: miplc report %s\n", e.Name.V, progress.Done, progress.Cells, o.Dir)
		return err
	})
}

// load reads the file and checks the flags.
func (o *options) load() (*experiment.Experiment, error) {
	if o.Dir == "" {
		return nil, console.Usagef("miplc experiment: -o DIR is missing")
	}
	if o.Engine != "" {
		if err := console.CheckWord("--engine", o.Engine, engines.Names()...); err != nil {
			return nil, err
		}
	}
	if o.Device != "" {
		if err := console.CheckWord("--device", o.Device, engines.Devices()...); err != nil {
			return nil, err
		}
	}
	e, err := experiment.Load(o.File, language.Options{Set: o.Set})
	return e, console.Invalid(err)
}

// explain adds the exit code of a wrong file, and how to go on.
func (o *options) explain(err error) error {
	var wrong *runs.SpecError
	var stopped *experiment.InterruptedError
	switch {
	case errors.As(err, &wrong):
		return console.Invalid(wrong.Err)
	case errors.As(err, &stopped):
		return fmt.Errorf("%w\ngo on with: miplc experiment %s -o %s", err, o.File, o.Dir)
	}
	return err
}
