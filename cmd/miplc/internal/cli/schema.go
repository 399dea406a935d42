// The command miplc schema.

package cli

import (
	"github.com/spf13/cobra"

	"github.com/miplc/miplc/cmd/miplc/internal/console"
	"github.com/miplc/miplc/experiment/definition"
	"github.com/miplc/miplc/language"
)

// schemaCommand returns the command.
func schemaCommand(con *console.Console) *cobra.Command {
	kind := "spec"
	return &cobra.Command{
		Use:   "schema [KIND]",
		Short: "Print the JSON Schema of specs or of experiments",
		Long: `Print the JSON Schema with which an editor completes and checks YAML files for miplc. KIND
is the kind of file: spec (default), which describes a model and its training, or
experiment, which compares models. Save the schema in the folder of your YAML file, and
name it in the first line of that file, with a path relative to the file:

  # yaml-language-server: $schema=./schema.json

This works in editors with the YAML language server, such as VS Code with the YAML
extension. Save the schema again after an update of miplc. miplc validate also finds
mistakes that no schema can describe, such as wrong shapes. --json changes only errors.`,
		Example: "  miplc schema > schema.json\n  miplc schema experiment > experiment.schema.json",
		Args:    console.Args(console.Arg("[KIND]", &kind)),
		RunE: func(*cobra.Command, []string) error {
			if err := console.CheckWord("KIND", kind, "spec", "experiment"); err != nil {
				return err
			}
			schema := language.Dialect.Schema()
			if kind == "experiment" {
				schema = definition.Language.Schema()
			}
			_, err := con.Out.Write(schema)
			return err
		},
	}
}
