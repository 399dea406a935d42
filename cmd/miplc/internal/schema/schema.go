// Package schema is the command miplc schema.
package schema

import (
	"github.com/miplc/miplc/cmd/miplc/internal/console"
	"github.com/miplc/miplc/experiment/definition"
	"github.com/miplc/miplc/language"
	"github.com/spf13/cobra"
)

// Command returns the command.
func Command(con *console.Console) *cobra.Command {
	name := "spec"
	return &cobra.Command{
		Use:   "schema [LANGUAGE]",
		Short: "Print the JSON Schema of specs or of experiments",
		Long: `Print the JSON Schema of a language: spec (default) or experiment. An editor with a YAML
language server completes and checks files whose first line names the schema:

  # yaml-language-server: $schema=./schema.json`,
		Example: "  miplc schema > schema.json\n  miplc schema experiment > experiment.schema.json",
		Args:    console.Args(console.Arg("[LANGUAGE]", &name)),
		RunE: func(*cobra.Command, []string) error {
			if err := console.CheckWord("LANGUAGE", name, "spec", "experiment"); err != nil {
				return err
			}
			schema := language.Dialect.Schema()
			if name == "experiment" {
				schema = definition.Language.Schema()
			}
			_, err := con.Out.Write(schema)
			return err
		},
	}
}
