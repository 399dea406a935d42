// Package version is the command miplc version.
package version

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/miplc/miplc/cmd/miplc/internal/console"
)

// Info is what the command prints.
type Info struct {
	Miplc string `json:"miplc"` // module version, or "(devel)" for a build from a checkout
	Go    string `json:"go"`
	OS    string `json:"os"`
	Arch  string `json:"arch"`
}

// Current describes the running program.
func Current() Info {
	info := Info{Miplc: "(devel)", Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	if build, ok := debug.ReadBuildInfo(); ok && build.Main.Version != "" {
		info.Miplc = build.Main.Version
	}
	return info
}

// Command makes the command.
func Command(con *console.Console) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the versions of miplc and Go",
		Args:  console.Args(),
		RunE: func(*cobra.Command, []string) error {
			info := Current()
			return con.Result(info, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "miplc %s (%s, %s/%s)\n", info.Miplc, info.Go, info.OS, info.Arch)
				return err
			})
		},
	}
}
