package cli

import (
	"github.com/spf13/cobra"

	"github.com/miplc/miplc/cmd/miplc/internal/build"
	"github.com/miplc/miplc/cmd/miplc/internal/console"
	"github.com/miplc/miplc/cmd/miplc/internal/data"
	"github.com/miplc/miplc/cmd/miplc/internal/doctor"
	"github.com/miplc/miplc/cmd/miplc/internal/experiment"
	"github.com/miplc/miplc/cmd/miplc/internal/export"
	"github.com/miplc/miplc/cmd/miplc/internal/gen"
	initcmd "github.com/miplc/miplc/cmd/miplc/internal/init"
	"github.com/miplc/miplc/cmd/miplc/internal/parity"
	"github.com/miplc/miplc/cmd/miplc/internal/predict"
	"github.com/miplc/miplc/cmd/miplc/internal/report"
	"github.com/miplc/miplc/cmd/miplc/internal/runtime"
	"github.com/miplc/miplc/cmd/miplc/internal/schema"
	"github.com/miplc/miplc/cmd/miplc/internal/serve"
	"github.com/miplc/miplc/cmd/miplc/internal/specs"
	"github.com/miplc/miplc/cmd/miplc/internal/train"
	"github.com/miplc/miplc/cmd/miplc/internal/validate"
	"github.com/miplc/miplc/cmd/miplc/internal/version"
)

const rootHelp = `miplc compiles a YAML spec of a multi-instance partial-label model: it trains the
model on bags with candidate label sets and writes one ONNX file that Go services
run through onnxruntime or pure Go.

A SPEC is the path of a YAML file or the name of a shipped spec (miplc specs).

With --json every command prints exactly one JSON object on standard output. When
it fails the object has "exit" and "errors", a list of objects with file, line,
column, text, suggestion and notes, and standard error stays empty of errors. The
first 20 errors are told; "more_errors" counts the others.

Exit codes: 0 done, 1 failed, 2 wrong usage or invalid spec. Ctrl-C and SIGTERM end
a command with code 1 and nothing half-written; train and experiment keep what is
done and end with 75, which says that they can go on; serve answers what it has taken
and ends with 0. A second one does not wait for that.`

const rootExample = `  miplc train quickstart -o quickstart-run
  miplc predict quickstart-run/model.onnx bags.npz
  miplc parity quickstart-run`

// newRoot makes the command tree.
func newRoot(con *console.Console) *cobra.Command {
	root := &cobra.Command{
		Use:               "miplc",
		Short:             "Model compiler for multi-instance partial-label learning",
		Long:              rootHelp,
		Example:           rootExample,
		SilenceErrors:     true,
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
	}
	root.PersistentFlags().BoolVar(&con.JSON, "json", con.JSON, "print one JSON object for machines")
	root.SetFlagErrorFunc(console.FlagError)
	console.Group(con, root)
	root.SetHelpCommand(console.Help(root))
	root.AddCommand(
		initcmd.Command(con),
		validate.Command(con),
		build.Command(con),
		train.Command(con),
		predict.Command(con),
		serve.Command(con),
		parity.Command(con),
		export.Command(con),
		gen.Command(con),
		experiment.Command(con),
		report.Command(con),
		data.Command(con),
		runtime.Command(con),
		doctor.Command(con),
		schema.Command(con),
		specs.Command(con),
		version.Command(con),
	)
	markRun(root)
	return root
}
