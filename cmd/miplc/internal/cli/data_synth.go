// The command miplc data synth, which generates datasets.

package cli

import (
	"io"
	"math"

	"github.com/spf13/cobra"

	"github.com/miplc/miplc/cmd/miplc/internal/console"
	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/data/formats"
	"github.com/miplc/miplc/data/generate"
	"github.com/miplc/miplc/internal/fileio"
)

// synthOptions are the settings of miplc data synth.
type synthOptions struct {
	generate.Design
	datasetOutput
	Set    string
	Splits string
	r      int     // false positive labels; -1: default
	noise  float64 // -1: default
}

func synthCommand(con *console.Console) *cobra.Command {
	o := &synthOptions{datasetOutput: datasetOutput{Console: con}}
	cmd := &cobra.Command{
		Use:        "synth SET -o FILE",
		SuggestFor: []string{"generate", "create", "download"},
		Short:      "Generate an artificial dataset, or one from labelled instances",
		Long: `Generate a dataset, to try miplc or to repeat published experiments, and write it to one
file. SET is one of:

  prototypes     artificial; by default 300 bags, 20 features, five classes
  mnist-mipl     digits, from the IDX files in the folder mnist of --source
  fmnist-mipl    clothes, from the IDX files in the folder fashion-mnist
  birdsong-mipl  segments of bird recordings, from mil/birdsong/instances.csv.gz
  sival6-mipl    photos of six objects, from mil/sival6/instances.csv.gz

The last four imitate the datasets of the DEMIPL paper. Their bags are drawn from labelled
instances; docs/paper-data.md says where to get these. Options that you leave out have the
values of the published dataset. The same options always produce the same file.`,
		Example: `  miplc data synth prototypes -o bags.csv
  miplc data synth mnist-mipl --source data --r 1 -o mnist-r1.npz
  miplc data synth birdsong-mipl --source data --r 2 --seed 7 -o birdsong-r2.npz
  miplc data synth birdsong-mipl --source data --pools 8 --splits birdsong-splits.csv -o birdsong-r1.npz`,
		Args: console.Args(console.Arg("SET", &o.Set)),
		RunE: func(*cobra.Command, []string) error { return runSynth(o) },
	}
	f := cmd.Flags()
	f.SortFlags = false // those of all sets first
	console.OutputFlag(cmd, &o.Output, "FILE", "output file: "+formats.Writable().Or())
	f.BoolVar(&o.Force, "force", false, "overwrite an existing output file")
	f.StringVar(&o.Source, "source", con.Getenv("MIPLC_DATA"), "folder of the labelled instances (default: $MIPLC_DATA)")
	f.IntVar(&o.Bags, "bags", 0, "number of bags")
	f.IntVar(&o.r, "r", -1, "number of false labels per candidate set (default: 1)")
	f.Float64Var(&o.Positives, "positives", 0, "share of instances per bag that show its true label, from 0 to 1")
	f.IntVar(&o.MinSize, "min-size", 0, "number of instances of the smallest bag")
	f.IntVar(&o.MaxSize, "max-size", 0, "number of instances of the largest bag")
	f.StringSliceVar(&o.Classes, "classes", nil, "classes of the source that are labels, by name or number; instances "+
		"of the other classes fill the bags (prototypes: names of the classes, e.g. cat,dog,horse)")
	f.IntVar(&o.Pools, "pools", 0, "number of disjoint pools of instances; each bag draws from one of them (requires "+
		"--splits)")
	f.StringVar(&o.Splits, "splits", "", "CSV file to write ten train/test splits to (one per pool if there are at "+
		"most 5); training and test bags share no pool")
	f.Uint64Var(&o.Seed, "seed", 1, "seed of all random draws")
	f.IntVar(&o.Features, "features", 0, "number of features per instance (prototypes, default: 20)")
	f.IntVar(&o.ClassCount, "class-count", 0, "number of classes (prototypes, default: 5; excludes --classes)")
	f.Float64Var(&o.noise, "noise", -1, "standard deviation of the features around their prototype (prototypes, "+
		"default: 0.5)")
	console.MaxBytesFlag(f, &o.Limit)
	console.Limit(f, 1, console.Most, "bags", "min-size", "max-size", "features")
	console.Limit(f, 2, console.Most, "class-count", "pools")
	console.Limit(f, 0, 1000, "r")
	console.Limit(f, console.AboveZero, 1, "positives")
	console.Limit(f, 0, console.Most, "noise")
	console.Limit(f, 0, math.MaxUint64, "seed")
	return cmd
}

// runSynth generates and writes a dataset.
func runSynth(o *synthOptions) error {
	if err := console.CheckWord("SET", o.Set, generate.Sets...); err != nil {
		return err
	}
	if (o.Pools > 0) != (o.Splits != "") {
		return console.Usagef("miplc data synth: --pools and --splits are used together; random splits of a set drawn " +
			"from pools would mix them")
	}
	if o.r >= 0 {
		o.R = &o.r
	}
	if o.noise >= 0 {
		o.Noise = &o.noise
	}
	if err := o.Check(o.Set); err != nil {
		return console.Usagef("miplc data synth: %v", err)
	}
	if o.Set != generate.PrototypeSet && o.Source == "" {
		return console.Usagef("%s is drawn from labelled instances: give their folder with --source or MIPLC_DATA", o.Set)
	}
	return o.save(func() (*data.Dataset, error) {
		set, err := generate.Synth(o.Set, o.Design)
		if err == nil && o.Pools > 0 {
			err = o.writePoolSplits(set)
		}
		return set, err
	}, generate.Sources(o.Set, o.Source)...)
}

// writePoolSplits writes ten splits, or as many as there are, of a dataset that was generated from pools: 7 of 10
// pools are for training.
func (o *synthOptions) writePoolSplits(set *data.Dataset) error {
	out, err := o.Console.Create(o.Splits, fileio.WriteOptions{Force: o.Force, Inputs: generate.Sources(o.Set, o.Source)})
	if err != nil {
		return err
	}
	return out.Fill(func(w io.Writer) error {
		splits, err := generate.SplitPools(set.Bags(), set.Classes, o.Pools, 10, data.SplitSettings{Train: 0.7,
			Seed: o.Seed})
		if err != nil {
			return err
		}
		return data.WriteSplit(w, splits)
	})
}
