// The command group miplc runtime, which manages the libraries that run and train models on this machine.

package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/miplc/miplc/cmd/miplc/internal/console"
	"github.com/miplc/miplc/internal/libraries"
	"github.com/miplc/miplc/internal/onnxruntime"
	"github.com/miplc/miplc/train/xla/pjrt"
)

// runtimeCommand returns the command group.
func runtimeCommand(con *console.Console) *cobra.Command {
	cmd := &cobra.Command{
		Use:        "runtime",
		SuggestFor: []string{"install", "setup"},
		Short:      "Install or find onnxruntime, its GPU providers and the XLA plugin",
		Long: `Install or find the libraries that miplc runs on. You rarely need this: miplc train installs
onnxruntime itself. Use miplc runtime install for a GPU, or on a machine that only predicts.

miplc looks for the onnxruntime library in this order: --library, the environment
variables ` + onnxruntime.EnvLibrary + ` and ` + onnxruntime.EnvLibraryOwn + `,
the cache (filled by "miplc runtime install"), the folder of the miplc binary, system
folders, and Python's onnxruntime package. A library in the cache must have the SHA-256
that this version of miplc expects. A library that neither the flag nor the environment
names must belong to root or to you, in folders that no other user can write to.

It looks for the PJRT plugin of the engine xla in --pjrt-plugin, the environment
variable ` + pjrt.EnvPlugin + `, and then, for CPUs, in the cache (filled by "miplc
runtime install xla") and, for NVIDIA GPUs, in Python's packages, where pip install
"jax[cuda13]" puts it. The same rules apply to it.

It looks for the library of an execution provider in the environment (` + onnxruntime.EnvProvider + `WEBGPU
for the device webgpu) and in the cache (filled by "miplc runtime install webgpu" or
"cuda").`,
	}
	console.Group(con, cmd)
	cmd.AddCommand(installCommand(con), pathCommand(con))
	return cmd
}

// Libraries that can be installed.
const (
	libraryORT = "onnxruntime"
	libraryXLA = "xla"
)

func installCommand(con *console.Console) *cobra.Command {
	what, how := libraryORT, libraries.InstallOptions{}
	cmd := &cobra.Command{
		Use:   "install [onnxruntime|webgpu|cuda|xla]",
		Short: "Download onnxruntime " + onnxruntime.Version + ", a GPU provider or the XLA plugin for CPUs",
		Long: `Download a pinned library through pip or npm, verify its SHA-256 and unpack it into the
cache of miplc (miplc doctor prints its path). Do nothing if it is already there. If the
download or the verification fails, nothing is installed.

  onnxruntime  runs models
  webgpu       execution provider for predictions on GPUs of any vendor: --device webgpu
  cuda         execution provider for predictions on NVIDIA GPUs: --device cuda. A download of
               1.4 GB, 2.3 GB on the disk: onnxruntime built with CUDA 13, which replaces the
               one of "miplc runtime install", and NVIDIA's libraries, under NVIDIA's licence
  xla          PJRT plugin for training on CPUs with the engine xla`,
		Example: "  miplc runtime install\n  miplc runtime install --via npm --force\n  miplc runtime install webgpu",
		Args:    console.Args(console.Arg("[onnxruntime|webgpu|cuda|xla]", &what)),
		RunE:    func(cmd *cobra.Command, _ []string) error { return runInstall(cmd.Context(), con, what, how) },
	}
	cmd.Flags().StringVar((*string)(&how.Via), "via", string(libraries.ViaAuto), "download tool: auto, pip or npm")
	console.OneOf(cmd.Flags(), "via", string(libraries.ViaAuto), string(libraries.ViaPip), string(libraries.ViaNpm))
	cmd.Flags().BoolVar(&how.Force, "force", false, "download again even if a valid library is installed")
	return cmd
}

// runInstall installs the library.
func runInstall(ctx context.Context, con *console.Console, what string, how libraries.InstallOptions) error {
	if err := console.CheckWord("the library to install", what, libraryORT, onnxruntime.WebGPU, onnxruntime.CUDA,
		libraryXLA); err != nil {
		return err
	}
	how.Progress = con.Progress()
	switch what {
	case libraryORT:
		lib, err := onnxruntime.InstallLibrary(ctx, how)
		return printPath(con, lib, lib.Path, err)
	case libraryXLA:
		plugin, err := pjrt.Install(ctx, how)
		return printPath(con, plugin, plugin.Path, err)
	}
	provider, err := onnxruntime.InstallProvider(ctx, what, how)
	return printPath(con, provider, provider.Path, err)
}

func pathCommand(con *console.Console) *cobra.Command {
	var library string
	cmd := &cobra.Command{
		Use:   "path",
		Short: "Print the path of the onnxruntime library that miplc uses",
		Long: "Print the path of the onnxruntime library that miplc uses. Exit with status 1 if no library\nis usable; " +
			"miplc doctor then shows why.",
		Example: "  miplc runtime path\n  export " + onnxruntime.EnvLibrary + "=$(miplc runtime path)",
		Args:    console.Args(),
		RunE: func(*cobra.Command, []string) error {
			lib, err := onnxruntime.FindLibrary(library)
			if err == nil && onnxruntime.Available() {
				lib, err = onnxruntime.Start(library)
			}
			if err != nil {
				return err
			}
			for _, c := range onnxruntime.Candidates(library) {
				if c.Verdict == onnxruntime.VerdictRefused {
					con.Notef("%s is not used: %s", c.Path, c.Detail)
				}
			}
			return printPath(con, lib, lib.Path, nil)
		},
	}
	console.LibraryFlag(cmd.Flags(), &library)
	return cmd
}

// printPath prints only the path, for $(...) in a shell, unless there is an error.
func printPath(con *console.Console, result any, path string, err error) error {
	if err != nil {
		return err
	}
	return con.Resultf(result, "%s\n", path)
}
