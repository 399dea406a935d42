package data

import (
	"fmt"
	"math"
	"strings"

	"github.com/spf13/cobra"

	"github.com/miplc/miplc/cmd/miplc/internal/console"
	"github.com/miplc/miplc/data"
)

// prototypes is the name of the built-in set, which needs no source.
const prototypes = "prototypes"

// synthOptions are the settings of miplc data synth. Numbers that are 0 stand
// for the default of the set.
type synthOptions struct {
	Limits  data.Options
	Console *console.Console
	Set     string
	Output  string
	Force   bool

	Source             string
	Bags               int
	R                  int // false positive labels; -1: default
	Positives          float64
	MinSize, MaxSize   int
	Classes            []string
	Seed               uint64
	Features, ClassNum int     // prototypes alone
	Noise              float64 // prototypes alone
}

func synthCommand(con *console.Console) *cobra.Command {
	o := &synthOptions{Console: con}
	sets := append([]string{prototypes}, data.SynthSets...)
	cmd := &cobra.Command{
		Use:   "synth SET",
		Short: "Draw a set of bags from labelled instances",
		Long: fmt.Sprintf(`Draw a set of bags and write it to one file. SET is one of
%s.

The set %q is made up and needs no source. The others are drawn from the
labelled instances in the folder --source: mnist and fashion-mnist hold the IDX
files, mil/birdsong and mil/sival6 the instances as CSV. Settings that are not
given take the sizes of the published set. The same settings give the same file.`,
			strings.Join(sets, ", "), prototypes),
		Example: `  miplc data synth prototypes -o bags.npz
  miplc data synth mnist-mipl --source data --r 1 -o mnist-r1.npz
  miplc data synth birdsong-mipl --source data --r 2 --seed 7 -o birdsong-r2.npz`,
		Args: console.Args("SET"),
		RunE: func(_ *cobra.Command, args []string) error {
			o.Set = args[0]
			return runSynth(o)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&o.Output, "output", "o", "", "file to write: .npz, .csv or .csv.gz (required)")
	f.BoolVar(&o.Force, "force", false, "overwrite the file")
	f.StringVar(&o.Source, "source", con.Getenv("MIPLC_DATA"), "folder of the labelled instances")
	f.IntVar(&o.Bags, "bags", 0, "bags in all")
	f.IntVar(&o.R, "r", -1, "false positive labels of a bag")
	f.Float64Var(&o.Positives, "positives", 0, "share of positive instances in a bag")
	f.IntVar(&o.MinSize, "min-size", 0, "instances of the smallest bag")
	f.IntVar(&o.MaxSize, "max-size", 0, "instances of the largest bag")
	f.StringSliceVar(&o.Classes, "classes", nil, "classes of the source, by name or number; the others give the negatives")
	f.Uint64Var(&o.Seed, "seed", 1, "seed of all draws")
	f.IntVar(&o.Features, "features", 0, "features of an instance (prototypes)")
	f.IntVar(&o.ClassNum, "class-count", 0, "number of classes (prototypes)")
	f.Float64Var(&o.Noise, "noise", -1, "standard deviation around a prototype (prototypes)")
	console.SizeFlag(f, &o.Limits)
	console.Limit(f, 1, console.Most, "bags", "min-size", "max-size", "features")
	console.Limit(f, 2, console.Most, "class-count")
	console.Limit(f, 0, 1000, "r")
	console.Limit(f, console.AboveZero, 1, "positives")
	console.Limit(f, 0, console.Most, "noise")
	console.Limit(f, 0, math.MaxUint64, "seed")
	return cmd
}

// runSynth draws and saves.
func runSynth(o *synthOptions) error {
	if o.Output == "" {
		return console.Usagef("miplc data synth: -o FILE is missing")
	}
	known := append([]string{prototypes}, data.SynthSets...)
	if err := console.CheckWord("SET", o.Set, known...); err != nil {
		return err
	}
	if err := o.checkFlags(); err != nil {
		return err
	}
	out, err := create(o.Console, o.Output, o.Force, data.SynthSources(o.Set, o.Source)...)
	if err != nil {
		return err
	}
	defer out.Discard()
	set, err := o.draw()
	if err != nil {
		return err
	}
	return save(o.Console, set, out, o.Output)
}

// checkFlags refuses settings that the set would ignore.
func (o *synthOptions) checkFlags() error {
	if o.Set == prototypes {
		if len(o.Classes) > 0 {
			return console.Usagef("--classes chooses among the classes of a source; %s has none: give --class-count", prototypes)
		}
		return nil
	}
	if o.Features != 0 || o.ClassNum != 0 || o.Noise >= 0 {
		return console.Usagef("--features, --class-count and --noise are settings of %s, not of %s", prototypes, o.Set)
	}
	if o.Source == "" {
		return console.Usagef("%s is drawn from labelled instances: give their folder by --source or MIPLC_DATA", o.Set)
	}
	return nil
}

func (o *synthOptions) draw() (*data.Dataset, error) {
	if o.Set != prototypes {
		r := o.R
		switch r { // the package counts 0 as "default" and -1 as none
		case -1:
			r = 0
		case 0:
			r = -1
		}
		return data.Synth(o.Set, data.SynthOptions{
			Source: o.Source, Bags: o.Bags, R: r, Positives: o.Positives,
			MinSize: o.MinSize, MaxSize: o.MaxSize, Classes: o.Classes, Seed: o.Seed, Limits: o.Limits,
		})
	}
	p := data.DefaultPrototypes
	p.Seed = o.Seed
	if o.R >= 0 {
		p.Candidates = o.R
	}
	for _, given := range []struct {
		value int
		to    *int
	}{{o.Bags, &p.Bags}, {o.MinSize, &p.MinSize}, {o.MaxSize, &p.MaxSize}, {o.Features, &p.Features}, {o.ClassNum, &p.Classes}} {
		if given.value != 0 {
			*given.to = given.value
		}
	}
	if o.Positives != 0 {
		p.Positives = o.Positives
	}
	if o.Noise >= 0 {
		p.Noise = o.Noise
	}
	return data.Prototypes(p)
}
