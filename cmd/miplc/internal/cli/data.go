// The command group miplc data: generating, converting and inspecting datasets.

package cli

import (
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/miplc/miplc/cmd/miplc/internal/console"
	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/data/bagfile"
	"github.com/miplc/miplc/data/formats"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/fileio"
	"github.com/miplc/miplc/language"
)

// dataCommand returns the command group.
func dataCommand(con *console.Console) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "data",
		Short: "Generate, convert and describe datasets",
		Long: `Generate, convert and describe datasets. A dataset contains bags, such as photos. A bag
consists of instances, such as the patches of the photo, and has candidate labels, of
which one is true.

A CSV file has one row per instance; the rows of a bag are adjacent. The first row of a
bag has its true label, if known, and its candidates, separated by spaces; the other rows
may repeat them or leave them empty:

  bag,label,candidates,f1,f2
  farm/1.jpg,cat,cat dog,0.5,1.25
  farm/1.jpg,,,0.25,-3
  farm/2.jpg,,cat dog,1.5,0.75

Class names have no spaces. Optional columns are instance_label (class of the instance), x
and y (its position) and file (docs/large-data.md); all others are features. One named like
an identifier, such as slide_id, is an error: list it in --ignore-columns or
--feature-columns. miplc reads ` + formats.Readable().And() + `
(.mat as published with DEMIPL, the reference model), and writes ` + formats.Writable().And() + `;
see docs/data.md.`,
		Example: `  miplc data synth prototypes -o bags.csv                     # or write a CSV file yourself
  miplc data inspect bags.csv                                 # validate and describe it
  miplc train demipl-mlp --set data.set=bags.csv -o run       # train on it
  miplc data import bags.csv bags.npz
  miplc data bags --generator kmeansseg tiles -o tiles.npz`,
	}
	console.Group(con, cmd)
	cmd.AddCommand(synthCommand(con), bagsCommand(con), crowdCommand(con), importCommand(con), inspectCommand(con))
	return cmd
}

// groupColumnFlag adds the flag for the column of the groups.
func groupColumnFlag(f *pflag.FlagSet, to *bagfile.Reading) {
	f.StringVar(&to.Columns.Roles.Group, "group-column", "",
		"column of a CSV file with the group of each bag, e.g. patient")
}

// labelsFlag adds the flag for the kind of the labels of a dataset that is read, as data.labels of a spec.
func labelsFlag(f *pflag.FlagSet, to *bagfile.Reading) {
	f.StringVar((*string)(&to.Labels), "labels", "", "kind of labels: known (one certain label per bag), multi (any "+
		"number of true labels, separated by spaces) or noisy (candidate sets that may lack the true label) (default: "+
		"candidate sets)")
	console.OneOf(f, "labels", language.KnownLabels, language.MultiLabels, language.NoisyLabels)
}

// datasetOutput is the file to which a command writes a dataset.
type datasetOutput struct {
	Console *console.Console
	Output  string
	Force   bool
	stored  bool // without compression
}

// save writes the dataset that work returns. It starts the file before the work, so that errors are reported early.
func (o *datasetOutput) save(work func() (*data.Dataset, error), inputs ...string) error {
	if err := bagfile.CheckWritable(o.Output); err != nil {
		return diag.Invalid(err)
	}
	out, err := o.Console.Create(o.Output, fileio.WriteOptions{Force: o.Force, Inputs: inputs})
	if err != nil {
		return err
	}
	var set *data.Dataset
	if err := out.Fill(func(w io.Writer) (err error) {
		if set, err = work(); err != nil {
			return err
		}
		if o.stored {
			return bagfile.WriteStored(w, set)
		}
		return bagfile.Write(w, set, o.Output)
	}); err != nil {
		return err
	}
	bags, instances := set.Bags(), set.Offsets[set.Bags()]
	result := map[string]any{"file": o.Output, "bags": bags, "instances": instances, "features": set.Dim(),
		"classes": set.Classes, "data_sha256": set.Hash()}
	if o.stored {
		result["labels"], result["warnings"] = kindOf(set), set.Warnings
	}
	return o.Console.Resultf(result, "%s: %s, %s of %s, %s\n", o.Output, diag.Count(bags, "bag"),
		diag.Count(instances, "instance"), diag.Count(set.Dim(), "feature"), diag.Count(set.Classes, "class"))
}
