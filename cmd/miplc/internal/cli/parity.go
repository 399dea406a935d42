// The command miplc parity.

package cli

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/miplc/miplc/cmd/miplc/internal/console"
	"github.com/miplc/miplc/export"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/onnxruntime"
	"github.com/miplc/miplc/runs"
)

// parityResult is the output of the command.
type parityResult struct {
	Target string `json:"target"`
	Note   string `json:"note,omitempty"` // why an engine is missing
	*export.Agreement
}

// parityCommand returns the command.
func parityCommand(con *console.Console) *cobra.Command {
	target, library, o := "", "", runs.CheckOptions{}
	cmd := &cobra.Command{
		Use:        "parity DIR|MODEL",
		SuggestFor: []string{"compare", "diff"},
		Short:      "Compare the predictions of all engines and back ends on the same bags",
		Long: fmt.Sprintf(`Check that a model predicts the same everywhere: run it in every engine and back end on
seeded random bags, and print the largest absolute difference of probabilities and
attention scores for each pair.

MODEL is a model file; the back ends onnxruntime and onnx-go run it. DIR is the folder of
a run; the float64 interpreter and gorgonia then also run the graph of its spec with the
parameters of its checkpoint. Without a checkpoint only the back ends are compared.

If a pair differs by more than the tolerance, the command marks it with TOO FAR and exits
with 1. The tolerance is %.0e, or more (up to %.0e) if float32 rounding alone changes the
predictions of this model more.

The bags of a run folder have the sizes that were compared after training: the smallest, the
median and the largest of the dataset. Differences on bags of other sizes are warnings.`,
			export.Tolerance, export.MaxTolerance),
		Example: "  miplc parity quickstart-run\n  miplc parity model.onnx --sizes 1,7,500 --json",
		Args:    console.Args(console.Arg("DIR|MODEL", &target)),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.Flags().Changed("sizes") {
				o.Sizes = nil
			}
			return runParity(con, target, library, o)
		},
	}
	console.LibraryFlag(cmd.Flags(), &library)
	cmd.Flags().IntSliceVar(&o.Sizes, "sizes", export.DefaultSizes,
		"numbers of instances of the test bags (models with an encoder: 1,2,8)")
	cmd.Flags().Uint64Var(&o.Seed, "seed", 1, "seed of the random bags")
	const maxSize = 1_000_000 // a thousand times the largest bag of the published datasets
	console.Limit(cmd.Flags(), 1, maxSize, "sizes")
	console.Limit(cmd.Flags(), 0, math.MaxUint64, "seed")
	return cmd
}

// runParity compares the engines and prints the report. target is a model file or the folder of a run. It fails without
// onnxruntime, which this program could run: whoever asks for a comparison expects it there.
func runParity(con *console.Console, target, library string, o runs.CheckOptions) error {
	path, err := findModel(target)
	if err != nil {
		return err
	}
	if onnxruntime.Available() {
		if _, err := onnxruntime.Start(library); err != nil {
			return err
		}
	}
	r := parityResult{Target: target}
	if path != target {
		r.Agreement, err = runs.CompareRun(target, o)
	}
	if errors.Is(err, runs.ErrNoCheckpoint) {
		r.Note = "comparing only the back ends of the model file: " + err.Error()
	}
	if path == target || r.Note != "" {
		r.Agreement, err = runs.CompareFile(path, o)
	}
	if err != nil {
		return err
	}
	return con.ResultOf(r.Err(), r, func(w io.Writer) {
		if r.Note != "" {
			fmt.Fprintln(w, r.Note)
		}
		printParity(w, r.Agreement)
	})
}

// printParity writes the table of a report.
func printParity(out io.Writer, r *export.Agreement) {
	compared := r.Required
	if compared == nil {
		compared = r.BagSizes
	}
	sizes := strings.Join(strings.Fields(strings.Trim(fmt.Sprint(compared), "[]")), ", ")
	if at := strings.LastIndex(sizes, ", "); at >= 0 {
		sizes = sizes[:at] + " and " + sizes[at+2:]
	}
	fmt.Fprintf(out, "parity: largest absolute difference on bags of %s instances, tolerance %.0e\n", sizes, r.Tolerance)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "  compared\t\tprobabilities\tattention\t")
	for _, p := range r.Pairs {
		verdict := "ok"
		if !p.OK {
			verdict = "TOO FAR"
		}
		if p.Bound > r.Tolerance {
			verdict += fmt.Sprintf(" (rounding allows %.0e)", p.Bound)
		}
		diag.Fprintf(w, "  %s\t%s\t%.1e\t%.1e\t%s\n", p.A, p.B, p.Probabilities, p.Attention, verdict)
	}
	w.Flush()
	for _, f := range r.Failed {
		fmt.Fprintf(out, "  %s failed: %s\n", f.Engine, f.Error)
	}
	for _, text := range r.Warnings {
		diag.Fprintf(out, "  warning: %s\n", text)
	}
	for _, name := range r.LeftOut {
		diag.Fprintf(out, "  %s computes this model wrong, so the file does not list it\n", name)
	}
}
