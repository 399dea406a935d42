// The tree of all commands, with the help that they share.

package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/miplc/miplc/cmd/miplc/internal/console"
)

const rootHelp = `miplc trains classifiers on bags: groups of feature vectors, such as the patches of a photo.
Each bag has one true label, but you may know only a few candidates for it. miplc writes the
trained model as one ONNX file, which miplc serve, Go services and other programs run. New
here? Run the examples below.

A spec is a YAML file that describes the data, the model and its training. SPEC in the help of
a command is the path of such a file or the name of a shipped spec (see miplc specs):

  name: my-model
  extends: demipl-mlp
  data: {set: bags.csv}

Exit codes:
  0   success
  1   failure
  2   wrong usage or invalid spec
  75  train or experiment was interrupted; the same command (train with --resume) continues

Ctrl-C, SIGTERM and SIGHUP stop a command without leaving half-written files; serve first
finishes the requests in flight and exits with 0. A second signal stops immediately.

With --json every command prints exactly one JSON object on standard output. On failure
the object has "exit", "errors" (a list with file, line, column, text, suggestion and
notes, at most 20) and "more_errors", the number of further errors.`

const rootExample = `  miplc data synth prototypes -o bags.csv                     # or a CSV file of your own
  miplc data inspect bags.csv                                 # validate and describe it
  miplc train demipl-mlp --set data.set=bags.csv -o my-run    # train a shipped model on it
  miplc predict my-run bags.csv
  miplc serve my-run`

// usageEnd is the end of the help of every command.
const usageEnd = `{{if .HasParent}}
Errors are printed to standard error. Exit codes: 0 success, 1 failure, 2 wrong usage or
invalid spec; miplc help lists all of them.
{{end}}`

// newRoot returns the command tree.
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
	root.PersistentFlags().BoolVar(&con.JSON, "json", con.JSON, "print one JSON object instead of text")
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), ".FlagUsages", ".FlagUsagesWrapped 90") + usageEnd)
	root.SetFlagErrorFunc(console.FlagError)
	console.Group(con, root)
	versionCommand := versionCommand(con)
	addVersionFlag(root, versionCommand)
	root.SetHelpCommand(console.Help(root))
	root.AddCommand(
		initCommand(con),
		validateCommand(con),
		buildCommand(con),
		trainCommand(con),
		predictCommand(con),
		serveCommand(con),
		parityCommand(con),
		exportCommand(con),
		genCommand(con),
		experimentCommand(con),
		reportCommand(con),
		dataCommand(con),
		runtimeCommand(con),
		doctorCommand(con),
		schemaCommand(con),
		specsCommand(con),
		versionCommand,
	)
	return root
}

// addVersionFlag makes miplc --version, which most programs have, the same as miplc version.
func addVersionFlag(root, command *cobra.Command) {
	asked, others := false, root.RunE
	root.Flags().BoolVar(&asked, "version", false, "print the versions, like miplc version")
	root.RunE = func(cmd *cobra.Command, args []string) error {
		if asked && len(args) == 0 {
			return command.RunE(cmd, args)
		}
		return others(cmd, args)
	}
}
