// Package runtime is the command group miplc runtime: the onnxruntime
// library on this machine.
package runtime

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/miplc/miplc/cmd/miplc/internal/console"
	"github.com/miplc/miplc/internal/pinned"
	"github.com/miplc/miplc/runtime/ortlib"
)

// Command makes the group.
func Command(con *console.Console) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "runtime",
		Short: "Install or find the onnxruntime library",
		Long: `The onnxruntime library is looked for in this order: the flag --library, the
environment (` + ortlib.EnvLibrary + `, then ` + ortlib.EnvLibraryOwn + `),
beside the miplc binary, the cache that "miplc runtime install" fills, the
system's library folders, and Python's onnxruntime package.`,
	}
	console.Group(con, cmd)
	cmd.AddCommand(installCommand(con), pathCommand(con))
	return cmd
}

// InstallOptions are the settings of miplc runtime install.
type InstallOptions struct {
	Console *console.Console
	Via     string
	Force   bool
}

func installCommand(con *console.Console) *cobra.Command {
	o := &InstallOptions{Console: con}
	cmd := &cobra.Command{
		Use:   "install",
		Short: "Fetch onnxruntime " + ortlib.Version + " into the cache",
		Long: `Fetch the pinned onnxruntime through pip or npm, check its SHA-256 and unpack it
into the cache of miplc. Nothing is done when it is there already.`,
		Example: "  miplc runtime install\n  miplc runtime install --via npm --force",
		Args:    console.Args(),
		RunE:    func(cmd *cobra.Command, _ []string) error { return RunInstall(cmd.Context(), o) },
	}
	cmd.Flags().StringVar(&o.Via, "via", string(pinned.ViaAuto), "tool to fetch with: auto, pip or npm")
	cmd.Flags().BoolVar(&o.Force, "force", false, "fetch again even when a good library is installed")
	return cmd
}

// RunInstall fetches the library.
func RunInstall(ctx context.Context, o *InstallOptions) error {
	known := []string{string(pinned.ViaAuto), string(pinned.ViaPip), string(pinned.ViaNpm)}
	if err := console.CheckWord("--via", o.Via, known...); err != nil {
		return err
	}
	lib, err := ortlib.Install(ctx, pinned.InstallOptions{
		Via: pinned.Via(o.Via), Force: o.Force, Progress: o.Console.Progress(),
	})
	if err != nil {
		return err
	}
	return printLibrary(o.Console, lib)
}

func pathCommand(con *console.Console) *cobra.Command {
	var library string
	cmd := &cobra.Command{
		Use:     "path",
		Short:   "Print the onnxruntime library that miplc uses",
		Example: "  miplc runtime path\n  export " + ortlib.EnvLibrary + "=$(miplc runtime path)",
		Args:    console.Args(),
		RunE: func(*cobra.Command, []string) error {
			lib, err := ortlib.Find(ortlib.Options{Path: library})
			if err != nil {
				return err
			}
			return printLibrary(con, lib)
		},
	}
	cmd.Flags().StringVar(&library, "library", "", "onnxruntime library, or a folder that holds it")
	return cmd
}

// printLibrary prints the bare path, fit for a shell's $(...).
func printLibrary(con *console.Console, lib ortlib.Library) error {
	return con.Result(lib, func(w io.Writer) error {
		_, err := fmt.Fprintln(w, lib.Path)
		return err
	})
}
