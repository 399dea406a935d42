// The command miplc data crowd, which makes candidate sets from the labels of several annotators.

package cli

import (
	"io"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/miplc/miplc/cmd/miplc/internal/console"
	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/data/bagfile"
	"github.com/miplc/miplc/data/generate"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/fileio"
)

// crowdOptions are the settings of miplc data crowd.
type crowdOptions struct {
	datasetOutput
	Reading    bagfile.Reading
	Annotators []string
	Classes    []string
	Bags       string
	Outside    string
}

func crowdCommand(con *console.Console) *cobra.Command {
	o := &crowdOptions{datasetOutput: datasetOutput{Console: con}}
	cmd := &cobra.Command{
		Use:   "crowd ANNOTATOR.csv... -o FILE",
		Short: "Make candidate sets from the labels of several annotators",
		Long: `Make one candidate set per image from the label probabilities of at least three
annotators, by the rule of the DEMIPL paper: a label is a candidate if at least two
annotators give it a probability above 0. If that gives fewer than two candidates, the
candidates are the most probable label of each annotator (all of them if several tie).

Each annotator has a CSV file with one row per image and one column per class; an empty
field is 0:

  image,DEB,LYM,MUC
  LYM/tile-1.png,0.3,0.7,

The output has the same form with 0 and 1, for miplc data bags --candidates. With --bags
the output is that dataset with the new candidate sets; the flags for columns apply to it.
The row LYM/tile-1.png belongs to the bag of this name, or to the only one whose name ends
in /LYM/tile-1.png. An image or class that a file lacks is an error that names the file;
nothing is written.`,
		Example: `  miplc data crowd anna.csv ben.csv cleo.csv -o candidates.csv
  miplc data bags --generator kmeansseg --candidates candidates.csv photos -o photos.npz
  miplc data crowd anna.csv ben.csv cleo.csv --bags sift.npz -o sift-crowd.npz`,
		Args: console.Args(console.Arguments("ANNOTATOR.csv...", &o.Annotators)),
		RunE: func(*cobra.Command, []string) error { return runCrowd(o) },
	}
	f := cmd.Flags()
	console.ReadingFlags(f, &o.Reading)
	console.OutputFlag(cmd, &o.Output, "FILE", "output file: .csv, or with --bags a dataset")
	f.BoolVar(&o.Force, "force", false, "overwrite an existing output file")
	f.StringSliceVar(&o.Classes, "classes", nil, "classes that every file must contain (default: those of --bags, else "+
		"of the first file)")
	f.StringVar(&o.Bags, "bags", "", "dataset whose candidate sets are replaced, matched by image name")
	outsideFlag(f, &o.Outside, "--bags")
	return cmd
}

// runCrowd makes the candidate sets and writes them.
func runCrowd(o *crowdOptions) error {
	if len(o.Annotators) < generate.MinAnnotators {
		return console.Usagef("miplc data crowd: the rule needs the files of at least %d annotators, %d given",
			generate.MinAnnotators, len(o.Annotators))
	}
	inputs := append(slices.Clip(o.Annotators), o.Bags)
	if o.Bags == "" {
		return o.writeTable(inputs)
	}
	return o.save(func() (*data.Dataset, error) {
		set, err := bagfile.OpenWith(o.Bags, o.Reading)
		if err != nil {
			return nil, err
		}
		classes := o.Classes
		if classes == nil && set.Classes > 0 {
			classes = set.AllClassNames()
		}
		table, _, err := o.distill(classes)
		if err != nil {
			return nil, err
		}
		return o.attach(set, table, o.Outside)
	}, inputs...)
}

// distill reads the files of the annotators and makes the candidate sets.
func (o *crowdOptions) distill(classes []string) (*generate.LabelTable, generate.CrowdStats, error) {
	annotators, err := generate.ReadAnnotators(o.Annotators, classes)
	if err != nil {
		return nil, generate.CrowdStats{}, err
	}
	return generate.DistillCandidates(annotators)
}

// writeTable writes only the candidate sets.
func (o *crowdOptions) writeTable(inputs []string) error {
	if filepath.Ext(o.Output) != ".csv" {
		return console.Usagef("%s: candidate sets are written as .csv; give --bags to write a dataset", o.Output)
	}
	out, err := o.Console.Create(o.Output, fileio.WriteOptions{Force: o.Force, Inputs: inputs})
	if err != nil {
		return err
	}
	var stats generate.CrowdStats
	if err := out.Fill(func(w io.Writer) error {
		table, found, err := o.distill(o.Classes)
		if err != nil {
			return err
		}
		stats = found
		return generate.WriteCandidates(w, table)
	}); err != nil {
		return err
	}
	return o.Console.Resultf(struct {
		File string `json:"file"`
		generate.CrowdStats
	}{o.Output, stats}, "%s: %s, %s, %.2f candidates per image on average; agreed on for %d, most probable labels for "+
		"%d\n", o.Output, diag.Count(stats.Images, "image"), diag.Count(stats.Classes, "class"), stats.MeanCandidates,
		stats.Agreed, stats.Picked)
}
