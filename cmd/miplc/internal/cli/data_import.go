// The command miplc data import, which converts a dataset to another format.

package cli

import (
	"github.com/spf13/cobra"

	"github.com/miplc/miplc/cmd/miplc/internal/console"
	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/data/bagfile"
)

func importCommand(con *console.Console) *cobra.Command {
	var input string
	var reading bagfile.Reading
	var labels crowdLabels
	o := datasetOutput{Console: con}
	cmd := &cobra.Command{
		Use:        "import IN OUT",
		SuggestFor: []string{"convert", "load"},
		Short:      "Convert a dataset to another format",
		Long: "Read a dataset (" + bagfile.Readable().List() + "), validate it and write it as\n" +
			bagfile.Writable().Or() + ". The ending of OUT selects the format. An invalid dataset is an error that\nnames " +
			"the line or the bag, and nothing is written.",
		Example: "  miplc data import MNIST_MIPL_r1.mat mnist-r1.npz\n  miplc data import bags.npz bags.csv.gz\n  " +
			"miplc data import certain.csv certain.npz --labels known",
		Args: console.Args(console.Arg("IN", &input), console.Arg("OUT", &o.Output)),
		RunE: func(*cobra.Command, []string) error {
			if err := labels.set(&reading); err != nil {
				return err
			}
			return o.save(func() (*data.Dataset, error) { return bagfile.OpenWith(input, reading) }, input)
		},
	}
	console.ReadingFlags(cmd.Flags(), &reading)
	groupColumnFlag(cmd.Flags(), &reading)
	labels.addFlag(cmd.Flags())
	cmd.Flags().BoolVar(&o.Force, "force", false, "overwrite OUT if it exists")
	return cmd
}
