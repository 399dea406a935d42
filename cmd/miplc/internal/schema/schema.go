// Package schema is the command miplc schema.
package schema

import (
	"github.com/spf13/cobra"

	"github.com/miplc/miplc/cmd/miplc/internal/console"
	"github.com/miplc/miplc/experiment"
	"github.com/miplc/miplc/language"
)

// Command makes the command.
func Command(con *console.Console) *cobra.Command {
	return &cobra.Command{
		Use:   "schema [LANGUAGE]",
		Short: "Print the JSON Schema of specs or of experiments",
		Long: `Print the JSON Schema of a language: spec, the default, or experiment. An editor
with a YAML language server completes and checks a file whose first line names it:

  # yaml-language-server: $schema=./schema.json`,
		Example: "  miplc schema > schema.json\n  miplc schema experiment > experiment.schema.json",
		Args:    console.Args("[LANGUAGE]"),
		RunE: func(_ *cobra.Command, args []string) error {
			schema := language.Schema()
			if len(args) > 0 {
				if err := console.CheckWord("LANGUAGE", args[0], "spec", "experiment"); err != nil {
					return err
				}
				if args[0] == "experiment" {
					schema = experiment.Language.Schema()
				}
			}
			_, err := con.Out.Write(schema)
			return err
		},
	}
}
