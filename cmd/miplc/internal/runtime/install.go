// Package runtime is the command group miplc runtime: the libraries on this
// machine that models and engines run in.
package runtime

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/miplc/miplc/cmd/miplc/internal/console"
	"github.com/miplc/miplc/internal/pinned"
	"github.com/miplc/miplc/runtime/ortlib"
	"github.com/miplc/miplc/train/xla/pjrt"
)

// Command makes the group.
func Command(con *console.Console) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "runtime",
		Short: "Install or find onnxruntime, its WebGPU provider and the plugin of XLA",
		Long: `The onnxruntime library is looked for in this order: the flag --library, the
environment (` + ortlib.EnvLibrary + `, then ` + ortlib.EnvLibraryOwn + `),
the cache that "miplc runtime install" fills, beside the miplc binary, the
system's library folders, and Python's onnxruntime package. A library in the
cache must have the pinned SHA-256. A library that neither the flag nor the
environment names must belong to root or to you, in folders that nobody else can
change.

The PJRT plugin with which the engine xla trains is looked for in the flag
--pjrt-plugin, the environment (` + pjrt.EnvPlugin + `), and then: for the CPU in
the cache that "miplc runtime install xla" fills, for NVIDIA GPUs in Python's
packages, where pip install "jax[cuda13]" puts it. The same rules apply to it.

The library of an execution provider is looked for in the environment
(` + ortlib.EnvProvider + `WEBGPU for the provider webgpu) and in the cache that
"miplc runtime install webgpu" fills.`,
	}
	console.Group(con, cmd)
	cmd.AddCommand(installCommand(con), pathCommand(con))
	return cmd
}

// installOptions are the settings of miplc runtime install.
type installOptions struct {
	Console *console.Console
	What    string // onnxruntime, webgpu or xla
	Via     string
	Force   bool
}

// What can be installed.
const (
	libraryORT = "onnxruntime"
	libraryXLA = "xla"
)

func installCommand(con *console.Console) *cobra.Command {
	o := &installOptions{Console: con, What: libraryORT}
	cmd := &cobra.Command{
		Use:   "install [onnxruntime|webgpu|xla]",
		Short: "Fetch onnxruntime " + ortlib.Version + ", its WebGPU provider, or a PJRT plugin of XLA for CPUs",
		Long: `Fetch a pinned library through pip or npm, check its SHA-256 and unpack it into the
cache of miplc. Nothing is fetched when it is there already.

  onnxruntime  runs models and the engine ort
  webgpu       execution provider for GPUs of any vendor: --provider webgpu
  xla          PJRT plugin with which the engine xla trains on CPUs`,
		Example: "  miplc runtime install\n  miplc runtime install --via npm --force\n  miplc runtime install webgpu",
		Args:    console.Args(console.Arg("[onnxruntime|webgpu|xla]", &o.What)),
		RunE:    func(cmd *cobra.Command, _ []string) error { return runInstall(cmd.Context(), o) },
	}
	cmd.Flags().StringVar(&o.Via, "via", string(pinned.ViaAuto), "tool to fetch with: auto, pip or npm")
	cmd.Flags().BoolVar(&o.Force, "force", false, "fetch again even when a good library is installed")
	return cmd
}

// runInstall fetches the library.
func runInstall(ctx context.Context, o *installOptions) error {
	known := []string{string(pinned.ViaAuto), string(pinned.ViaPip), string(pinned.ViaNpm)}
	if err := console.CheckWord("--via", o.Via, known...); err != nil {
		return err
	}
	if err := console.CheckWord("the library to install", o.What, libraryORT, ortlib.WebGPU, libraryXLA); err != nil {
		return err
	}
	how := pinned.InstallOptions{Via: pinned.Via(o.Via), Force: o.Force, Progress: o.Console.Progress()}
	if o.What == ortlib.WebGPU {
		p, err := ortlib.InstallProvider(ctx, o.What, how)
		if err != nil {
			return err
		}
		return printPath(o.Console, p, p.Path)
	}
	if o.What == libraryXLA {
		p, err := pjrt.Install(ctx, how)
		if err != nil {
			return err
		}
		return printPath(o.Console, p, p.Path)
	}
	lib, err := ortlib.Install(ctx, how)
	if err != nil {
		return err
	}
	return printPath(o.Console, lib, lib.Path)
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
			for _, c := range ortlib.Candidates(ortlib.Options{Path: library}) {
				if c.Verdict == ortlib.Refused {
					con.Notef("%s is not used: %s", c.Path, c.Detail)
				}
			}
			return printPath(con, lib, lib.Path)
		},
	}
	cmd.Flags().StringVar(&library, "library", "", "onnxruntime library, or a folder that holds it")
	return cmd
}

// printPath prints the bare path, fit for a shell's $(...).
func printPath(con *console.Console, result any, path string) error {
	return con.Resultf(result, "%s\n", path)
}
