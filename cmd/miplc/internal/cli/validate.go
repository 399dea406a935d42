// The command miplc validate.

package cli

import (
	"errors"
	"io"

	"github.com/spf13/cobra"

	"github.com/miplc/miplc/cmd/miplc/internal/console"
	"github.com/miplc/miplc/data/bagfile"
	"github.com/miplc/miplc/experiment"
	"github.com/miplc/miplc/experiment/definition"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/runs/prepare"
)

// validateOptions are the options of the command.
type validateOptions struct {
	Console *console.Console
	Specs   []string
	Set     []string
	Data    bagfile.Folder
}

// validatedFile is the result for one spec.
type validatedFile struct {
	Spec       string            `json:"spec"`
	Valid      bool              `json:"valid"`
	Parameters int               `json:"parameters,omitempty"` // learned numbers
	Cells      int               `json:"cells,omitempty"`      // of an experiment
	Note       string            `json:"note,omitempty"`       // what could not be checked
	Warnings   []string          `json:"warnings,omitempty"`   // probable mistakes
	Errors     []console.Problem `json:"errors,omitempty"`
	MoreErrors int               `json:"more_errors,omitempty"` // beyond those
}

// validateCommand returns the command.
func validateCommand(con *console.Console) *cobra.Command {
	o := &validateOptions{Console: con}
	cmd := &cobra.Command{
		Use:        "validate SPEC...",
		SuggestFor: []string{"lint", "verify"},
		Short:      "Check specs and experiments and print all errors",
		Long: `Check the keys, types, values, shapes and splits of specs, and print all errors of all files.
SPEC is a path or the name of a shipped spec, or the file of an experiment, which is checked
together with its specs. The command exits with code 2 if a spec is invalid, and with code 1
if only a dataset is. An error names the place and, for typing errors, the right word:

  my.yaml:4:9: error: unknown key "epocs" in train
      4 | train: {epocs: 5}
        |         ^^^^^
          did you mean "epochs"?

Shapes follow from the dataset. If it is not found, they follow from data.shape and
data.classes, or from assumed sizes if the spec has neither. A note then says so; it is not an
error, so that specs can be checked on a machine without their data.`,
		Example: "  miplc validate model.yaml\n  miplc validate models/*.yaml --json",
		Args:    console.Args(console.Arguments("SPEC...", &o.Specs)),
		RunE:    func(*cobra.Command, []string) error { return runValidate(o) },
	}
	cmd.Flags().StringArrayVar(&o.Set, "set", nil, "override of a value of the spec, e.g. train.epochs=5 (repeatable)")
	console.DataFlags(con, cmd.Flags(), &o.Data, "folder in which datasets are searched (default: $MIPLC_DATA)")
	return cmd
}

// runValidate checks every spec.
func runValidate(o *validateOptions) error {
	var files []validatedFile
	var wrong []error
	code := console.ExitFailed // unless a spec is invalid
	for _, name := range o.Specs {
		f, err := validateFile(name, o)
		files = append(files, f)
		if err != nil {
			wrong = append(wrong, err)
			if errors.As(err, new(*diag.InvalidError)) {
				code = console.ExitInvalid
			}
		}
	}
	result := map[string]any{"specs": files}
	if len(wrong) == 0 || !o.Console.JSON {
		err := o.Console.Result(result, func(w io.Writer) { printValid(w, files) })
		if err != nil || len(wrong) == 0 {
			return err
		}
	}
	var all diag.List // so that all are printed in the same way
	for _, err := range wrong {
		all.AddError(diag.Pos{}, err)
	}
	return &console.Failure{Code: code, Err: all, Result: result}
}

func validateFile(name string, o *validateOptions) (validatedFile, error) {
	f := validatedFile{Spec: name}
	var err error
	if definition.IsExperiment(name) {
		f.Cells, err = experiment.Validate(name, o.Set...)
		err = diag.Invalid(err)
	} else {
		var v prepare.Validation
		v, err = prepare.Validate(name, o.Set, o.Data)
		f.Parameters, f.Note, f.Warnings = v.Parameters, v.Note, v.Warnings
	}
	if f.Valid = err == nil; !f.Valid {
		f.Errors, f.MoreErrors = console.Problems(err)
	}
	return f, err
}

func printValid(w io.Writer, files []validatedFile) {
	for _, f := range files {
		if !f.Valid {
			continue
		}
		switch {
		case f.Cells > 0:
			diag.Fprintf(w, "%s: valid, an experiment of %s\n", f.Spec, diag.Count(f.Cells, "cell"))
		case f.Parameters > 0:
			diag.Fprintf(w, "%s: valid, %s\n", f.Spec, diag.Count(f.Parameters, "parameter"))
		default: // the size of a fitted learner depends on its data
			diag.Fprintf(w, "%s: valid\n", f.Spec)
		}
		if f.Note != "" {
			diag.Fprintf(w, "  note: %s\n", f.Note)
		}
		for _, text := range f.Warnings {
			diag.Fprintf(w, "  warning: %s\n", text)
		}
	}
}
