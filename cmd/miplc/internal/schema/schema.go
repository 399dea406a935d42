// Package schema is the command miplc schema.
package schema

import (
	"github.com/spf13/cobra"

	"github.com/miplc/miplc/cmd/miplc/internal/console"
	"github.com/miplc/miplc/language"
)

// Command makes the command.
func Command(con *console.Console) *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of the spec language",
		Long: `Print the JSON Schema of the spec language. An editor with a YAML language server
completes and checks a spec whose first line names it:

  # yaml-language-server: $schema=./schema.json`,
		Example: "  miplc schema > schema.json",
		Args:    console.Args(),
		RunE: func(*cobra.Command, []string) error {
			_, err := con.Out.Write(language.Schema())
			return err
		},
	}
}
