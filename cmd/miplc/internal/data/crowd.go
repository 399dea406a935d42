package data

import (
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/miplc/miplc/cmd/miplc/internal/console"
	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/data/crowd"
	"github.com/miplc/miplc/internal/outfile"
)

// crowdOptions are the settings of miplc data crowd.
type crowdOptions struct {
	Limits  data.Options
	Console *console.Console
	Workers []string
	Output  string
	Force   bool
	Classes []string
	Bags    string
	Outside string
}

// distilled is what the command prints.
type distilled struct {
	File string `json:"file"`
	crowd.Stats
}

func crowdCommand(con *console.Console) *cobra.Command {
	o := &crowdOptions{Console: con}
	cmd := &cobra.Command{
		Use:   "crowd WORKER.csv...",
		Short: "Distil candidate sets from what several workers say",
		Long: `Make one candidate set for each image out of the label probabilities of three or
more workers, by the rule of the paper: a label that two workers or more give a
probability above 0 is a candidate; where that leaves one label or none, the
candidates are each worker's most probable label.

Every worker has a CSV file with a header image,CLASS,CLASS,... and one row an
image; an empty field is a probability of 0. The result is a file of the same form
with 0 and 1, for miplc data bags --candidates. With --bags the result is that set
of bags with the candidates in place of its own.`,
		Example: `  miplc data crowd anna.csv ben.csv cleo.csv -o candidates.csv
  miplc data crowd anna.csv ben.csv cleo.csv --bags sift.npz -o sift-crowd.npz`,
		Args: console.Args(console.Arguments("WORKER.csv...", &o.Workers)),
		RunE: func(*cobra.Command, []string) error { return runCrowd(o) },
	}
	f := cmd.Flags()
	console.SizeFlag(f, &o.Limits)
	f.StringVarP(&o.Output, "output", "o", "", "file to write: .csv, or with --bags a set of bags (required)")
	f.BoolVar(&o.Force, "force", false, "overwrite the file")
	f.StringSliceVar(&o.Classes, "classes", nil, "the classes that the files must have (default: those of --bags, or of the first file)")
	f.StringVar(&o.Bags, "bags", "", "set of bags to put the candidates on, matched by the names of the images")
	f.StringVar(&o.Outside, "outside", string(crowd.OutsideError), "with --bags, where the candidates leave out the true class: error, add, drop or forget")
	return cmd
}

// runCrowd distils and saves.
func runCrowd(o *crowdOptions) error {
	if o.Output == "" {
		return console.Usagef("miplc data crowd: -o FILE is missing")
	}
	if len(o.Workers) < crowd.MinWorkers {
		return console.Usagef("miplc data crowd: %d worker files are given; the rule needs at least %d workers", len(o.Workers), crowd.MinWorkers)
	}
	if err := checkOutside(o.Outside); err != nil {
		return err
	}
	if o.Bags != "" {
		if err := data.CheckWritable(o.Output); err != nil {
			return console.Invalid(err)
		}
	} else if filepath.Ext(o.Output) != ".csv" {
		return console.Usagef("%s: candidate sets are written as .csv; give --bags to write a set of bags", o.Output)
	}
	out, err := o.Console.Create(o.Output, outfile.Options{Force: o.Force, Inputs: append(slices.Clip(o.Workers), o.Bags)})
	if err != nil {
		return err
	}
	defer out.Discard()
	var set *data.Dataset
	classes := o.Classes
	if o.Bags != "" {
		if set, err = data.OpenWith(o.Bags, o.Limits); err != nil {
			return err
		}
		if o.Classes == nil && set.Classes > 0 {
			classes = set.Names()
		}
	}
	workers, err := crowd.ReadWorkers(o.Workers, classes)
	if err != nil {
		return err
	}
	table, stats, err := crowd.Distill(workers)
	if err != nil {
		return err
	}
	if set == nil {
		return o.table(out, table, stats)
	}
	if set, err = attach(o.Console, set, table, o.Outside); err != nil {
		return err
	}
	return save(o.Console, set, out, o.Output)
}

func (o *crowdOptions) table(out *outfile.File, table *crowd.Table, stats crowd.Stats) error {
	if err := crowd.WriteCandidates(out, table); err != nil {
		return err
	}
	if err := out.Commit(); err != nil {
		return err
	}
	return o.Console.Resultf(distilled{o.Output, stats}, "%s: %d images, %d classes, %.2f candidates an image; agreed on for %d, most probable labels for %d\n",
		o.Output, stats.Images, stats.Classes, stats.MeanCandidates, stats.Agreed, stats.Picked)
}
