// The command miplc data import, which converts a dataset to another format.

package cli

import (
	"github.com/spf13/cobra"

	"github.com/miplc/miplc/cmd/miplc/internal/console"
	"github.com/miplc/miplc/data/bagfile"
)

// importOptions are the settings of miplc data import.
type importOptions struct {
	Reading bagfile.Reading
	Console *console.Console
	Input   string
	Output  string
	Labels  crowdLabels
	Force   bool
}

func importCommand(con *console.Console) *cobra.Command {
	o := &importOptions{Console: con}
	cmd := &cobra.Command{
		Use:        "import IN OUT",
		SuggestFor: []string{"convert", "load"},
		Short:      "Convert a dataset to another format",
		Long: "Read a dataset (" + bagfile.Readable().List() + "), validate it and write it as\n" +
			bagfile.Writable().Or() + ". The ending of OUT selects the format. An invalid dataset is an error that\nnames " +
			"the line or the bag, and nothing is written.",
		Example: "  miplc data import MNIST_MIPL_r1.mat mnist-r1.npz\n  miplc data import bags.npz bags.csv.gz\n  " +
			"miplc data import certain.csv certain.npz --labels known",
		Args: console.Args(console.Arg("IN", &o.Input), console.Arg("OUT", &o.Output)),
		RunE: func(*cobra.Command, []string) error { return runImport(o) },
	}
	console.ReadingFlags(cmd.Flags(), &o.Reading)
	cmd.Flags().StringVar(&o.Reading.Columns.Roles.Group, "group-column", "",
		"column of a CSV file with the group of each bag, e.g. patient")
	o.Labels.addFlag(cmd.Flags())
	cmd.Flags().BoolVar(&o.Force, "force", false, "overwrite OUT if it exists")
	return cmd
}

// runImport converts a dataset.
func runImport(o *importOptions) error {
	if err := o.Labels.set(&o.Reading); err != nil {
		return err
	}
	out, err := createDataset(o.Console, o.Output, o.Force, o.Input)
	if err != nil {
		return err
	}
	defer out.Discard()
	set, err := bagfile.OpenWith(o.Input, o.Reading)
	if err != nil {
		return err
	}
	return saveDataset(o.Console, set, out, o.Output)
}
