// The command miplc version.

package cli

import (
	"github.com/spf13/cobra"

	"github.com/miplc/miplc/cmd/miplc/internal/console"
	"github.com/miplc/miplc/runs"
)

// versionCommand returns the command.
func versionCommand(con *console.Console) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the versions of miplc and Go and the commit",
		Long: "Print the version of miplc, the version of Go that compiled it, the platform and the\ncommit. Include " +
			"them when you report a bug.",
		Args: console.Args(),
		RunE: func(*cobra.Command, []string) error {
			info := runs.CurrentBuild()
			return con.Resultf(info, "%s\n", info)
		},
	}
}
