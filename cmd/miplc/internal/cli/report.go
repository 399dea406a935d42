// The command miplc report.

package cli

import (
	"cmp"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/miplc/miplc/cmd/miplc/internal/console"
	"github.com/miplc/miplc/data/measure"
	"github.com/miplc/miplc/experiment/report"
	"github.com/miplc/miplc/internal/diag"
)

// reportOptions are the options of the command.
type reportOptions struct {
	Console *console.Console
	Dir     string
	Output  string
	Test    string
	Measure []string
	Add     []string
}

// defaultFolder is the folder of the report inside that of the experiment.
const defaultFolder = "report"

// reportCommand returns the command.
func reportCommand(con *console.Console) *cobra.Command {
	o := &reportOptions{Console: con}
	cmd := &cobra.Command{
		Use:        "report DIR",
		SuggestFor: []string{"table", "tables", "plot", "results"},
		Short:      "Write tables and figures of an experiment",
		Long: `Write the tables and figures of an experiment. DIR is the folder that miplc experiment -o
wrote; the experiment need not be finished. The command writes report.md, report.tex
(tables only), report.html (one self-contained page), results.csv (one line per cell with all
measures, for pandas or R) and figures/*.svg, for the figures that the results allow. It
replaces an earlier report.

Each entry of a table of accuracies is the mean and sample standard deviation over the
splits. An entry without results is a dash, † marks trainings that diverged, and failed
trainings are listed below the tables. --measure selects other measures
(docs/measures.md); the report then has each table and figure once per measure.

The reference learner is the first one, unless the experiment names another. • marks a
learner that is significantly worse than the reference, ◦ one that is significantly better
(two-sided t-test over the splits at the 0.05 level, corrected for the training bags that
splits share, by Nadeau and Bengio). --test paired selects the ordinary paired t-test. It
finds too many differences; use it to compare with a paper that used it. ‡ means that there
is no test, for example with fewer than three splits; a note below the table says why.

--add FILE adds the results of another program on the same bags and splits: a CSV file with
the columns learner, split and accuracy, data and r if the experiment has several, and
others named like measures. A results.csv of another report works, too.

If DIR contains no experiment, or FILE does not fit it, the command exits with code 1; if a
measure is unknown, with code 2. In both cases nothing is written.`,
		Example: "  miplc report smoke\n  miplc report benchmark -o tables --measure accuracy,macro_f1\n  miplc report " +
			"compare --add pytorch.csv",
		Args: console.Args(console.Arg("DIR", &o.Dir)),
		RunE: func(*cobra.Command, []string) error { return runReport(o) },
	}
	cmd.Flags().StringVarP(&o.Output, "output", "o", "", "folder of the report (default: DIR/report)")
	cmd.Flags().StringVar(&o.Test, "test", testCorrected, "t-test: corrected (for training bags that splits share) or "+
		"paired")
	console.OneOf(cmd.Flags(), "test", testPaired, testCorrected)
	cmd.Flags().StringSliceVar(&o.Measure, "measure", []string{measure.Accuracy},
		"measures of the tables, separated by commas: "+diag.Words(measure.BagNames())+"; with the prefix "+
			measure.GroupPrefix+" those of groups of bags, e.g. patients")
	cmd.Flags().StringArrayVar(&o.Add, "add", nil, "CSV file with the results of another program (repeatable)")
	return cmd
}

// Values of --test.
const (
	testPaired    = "paired"
	testCorrected = "corrected"
)

// runReport writes the report.
func runReport(o *reportOptions) error {
	measures := make([]*measure.Measure, len(o.Measure))
	for i, name := range o.Measure {
		if err := console.CheckWord("--measure", name, measure.Names()...); err != nil {
			return err
		}
		if measures[i] = measure.Find(name); slices.Contains(o.Measure[:i], name) {
			return console.Usagef("miplc report: --measure names %s twice", name)
		}
	}
	o.Output = cmp.Or(o.Output, filepath.Join(o.Dir, defaultFolder))
	r, err := report.Read(o.Dir)
	if err != nil {
		return err
	}
	for _, path := range o.Add {
		if err := r.Add(path); err != nil {
			return err
		}
	}
	r.Corrected, r.Measures = o.Test == testCorrected, measures
	written, err := r.Write(o.Output)
	if err != nil {
		return err
	}
	return o.Console.Resultf(written, "%s: %d of %s, tables: %d, figures: %d\n", filepath.Join(o.Output, report.HTMLFile),
		written.Done, diag.Count(written.Cells, "cell"), len(written.Tables), len(written.Figures))
}
