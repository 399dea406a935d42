// The command miplc build.

package cli

import (
	"context"
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/miplc/miplc/cmd/miplc/internal/console"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/runs"
	"github.com/miplc/miplc/runs/build"
)

// buildOptions are the options of the command.
type buildOptions struct {
	Console *console.Console
	Name    string // of the spec
	Set     []string
	Library string // onnxruntime library; empty: search
	build.Task
}

// buildCommand returns the command.
func buildCommand(con *console.Console) *cobra.Command {
	o := &buildOptions{Console: con}
	cmd := &cobra.Command{
		Use:        "build SPEC -o DIR",
		SuggestFor: []string{"compile", "make", "graph"},
		Short:      "Compile a spec to graphs and ONNX files without training",
		Long: `Compile a spec without training, for example to inspect its graphs or to train it with your
own program. SPEC is a path or the name of a shipped spec. The command writes to DIR:

  graph.txt, graph.dot    the inference and the training graph
  model.onnx              the model with initial parameters, checked in every back end
  train_step.onnx         one training step for any onnxruntime, checked against the
                          float64 interpreter
  initial_parameters.bin  the initial parameters of train_step.onnx
  manifest.json           the inputs, outputs and parameter layout of these files
  sample_steps.json, .bin with --sample-steps: batches and losses of the first steps

If the spec sets data.shape and data.classes, no data is read. An earlier build in DIR
is replaced; a run is not.

A back end that disagrees with all others is omitted from the list of back ends in
model.onnx. If more back ends disagree, the model is saved as model.failed.onnx, the
differences as model.failed.json, and the command fails.`,
		Example: `  miplc build demipl -o build --data-dir data
  miplc build quickstart -o build --sample-steps 10
  miplc build model.yaml -o build && dot -Tsvg build/graph.dot > graph.svg`,
		Args: console.Args(console.Arg("SPEC", &o.Name)),
		RunE: func(cmd *cobra.Command, _ []string) error { return runBuild(cmd.Context(), o) },
	}
	f := cmd.Flags()
	console.OutputFlag(cmd, &o.Dir, "DIR", "folder of the build")
	f.StringArrayVar(&o.Set, "set", nil, "override of a value of the spec, e.g. data.classes=7 (repeatable)")
	console.DataFlags(con, f, &o.Data, "folder in which datasets are searched (default: $MIPLC_DATA)")
	console.LibraryFlag(f, &o.Library)
	f.IntVar(&o.SampleSteps, "sample-steps", 0, "number of training steps whose batches and losses are written too")
	f.BoolVar(&o.Force, "force", false, "overwrite a run in DIR")
	console.Limit(f, 0, 1000000, "sample-steps")
	return cmd
}

// runBuild builds and prints the result.
func runBuild(ctx context.Context, o *buildOptions) error {
	var err error
	if o.Spec, err = language.Load(o.Name, o.Set...); err != nil {
		return diag.Invalid(err)
	}
	if err := ensureLibrary(ctx, o.Console, o.Library, true); err != nil {
		return err
	}
	m, err := build.Run(ctx, o.Task)
	if err != nil {
		return err
	}
	return o.Console.Result(m, func(w io.Writer) {
		diag.Fprintf(w, "%s: %s, instances of %v, %s, %s\n", filepath.Join(o.Dir, runs.ModelFile), m.Name, m.InputShape,
			diag.Count(m.Classes, "class"), diag.Count(m.Parameters, "parameter"))
		diag.Fprintf(w, "inference graph of %s, training graph of %s: %s, %s\n", diag.Count(m.InferNodes, "node"),
			diag.Count(m.TrainNodes, "node"), build.GraphTextFile, build.GraphDOTFile)
		diag.Fprintf(w, "training step: %s, one step within %.1e of the interpreter on %s in %s\n", build.TrainStepFile,
			m.StepCheck.MaxAbsDiff, diag.Count(m.StepCheck.Instances, "instance"), diag.Count(m.StepCheck.Bags, "bag"))
		for i, loss := range m.Losses {
			fmt.Fprintf(w, "step %d loss %.8f\n", i+1, loss)
		}
		printParity(w, m.Parity)
	})
}
