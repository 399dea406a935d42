// Package doctor is the command miplc doctor: what this machine offers.
package doctor

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/miplc/miplc/cmd/miplc/internal/console"
	"github.com/miplc/miplc/cmd/miplc/internal/version"
	"github.com/miplc/miplc/internal/pinned"
	"github.com/miplc/miplc/runtime/ortlib"
	"github.com/miplc/miplc/train/engines"
	"github.com/miplc/miplc/train/ort"
	"github.com/miplc/miplc/train/xla/pjrt"
)

// Options are the settings of the command.
type Options struct {
	Console *console.Console
	Library string
	DataDir string
	Plugin  string
}

// Findings is what the command prints.
type Findings struct {
	version.Info
	Onnxruntime []ortlib.Candidate `json:"onnxruntime"` // every place looked at, in order
	Plugins     []pjrt.Candidate   `json:"pjrt_plugins"`
	Backends    []Backend          `json:"backends"`
	Engines     []Backend          `json:"engines"`
	Auto        string             `json:"auto"` // what miplc train takes on its own, and why
	Cache       Folder             `json:"cache"`
	Data        Folder             `json:"data"`
}

// Backend is one way to run or to train a model.
type Backend struct {
	Name   string `json:"name"`
	Usable bool   `json:"usable"`
	Detail string `json:"detail"`
}

// Folder is a place of files.
type Folder struct {
	Path   string `json:"path"`
	Exists bool   `json:"exists"`
}

// Command makes the command.
func Command(con *console.Console) *cobra.Command {
	o := &Options{Console: con}
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Show what this machine offers: onnxruntime, GPU, engines, folders",
		Long: `Show the versions of miplc and Go, every place where an onnxruntime library or a
PJRT plugin was looked for with its version and verdict, the back ends, the
training engines with the execution providers of onnxruntime and the GPU, the
cache and the data folder. The exit code is 1 when no onnxruntime library is
usable; a GPU may be missing.`,
		Example: "  miplc doctor\n  miplc doctor --json",
		Args:    console.Args(),
		RunE:    func(*cobra.Command, []string) error { return Run(o) },
	}
	cmd.Flags().StringVar(&o.Library, "library", "", "onnxruntime library, or a folder that holds it")
	cmd.Flags().StringVar(&o.DataDir, "data-dir", con.Getenv("MIPLC_DATA"), "folder of data sets")
	cmd.Flags().StringVar(&o.Plugin, "pjrt-plugin", "", "PJRT plugin for CUDA (xla_cuda_plugin.so)")
	return cmd
}

// Run looks around and prints.
func Run(o *Options) error {
	f := Findings{Info: version.Current(), Onnxruntime: ortlib.Candidates(ortlib.Options{Path: o.Library, Verify: true})}
	lib, err := ortlib.Find(ortlib.Options{Path: o.Library})
	f.Backends = []Backend{onnxruntime(lib, err), {Name: "onnx-go", Usable: true, Detail: "built in"}}
	f.Plugins = pjrt.Candidates(o.Plugin)
	f.Engines = trainers(o, err)
	if choice, err := engines.Choose(engines.Request{Library: o.Library, Plugin: o.Plugin}); err == nil {
		f.Auto = fmt.Sprintf("%s on %s: %s", choice.Name, choice.Device, choice.Reason)
		choice.Close()
	}
	cache, cacheErr := pinned.CacheDir()
	if cacheErr == nil {
		f.Cache = folder(cache)
	}
	f.Data = folder(o.DataDir)
	if err != nil && o.Console.JSON {
		return &console.Failure{Code: console.ExitFailed, Err: err, Result: f}
	}
	if perr := o.Console.Result(f, f.print); perr != nil || err == nil {
		return perr
	}
	return errors.New("no onnxruntime library is usable: " + ortlib.Remedy)
}

func onnxruntime(lib ortlib.Library, err error) Backend {
	if err != nil {
		return Backend{Name: "onnxruntime", Detail: ortlib.Remedy}
	}
	name := "onnxruntime"
	if lib.Version != "" {
		return Backend{Name: name, Usable: true, Detail: "version " + lib.Version + ", " + lib.Path}
	}
	return Backend{Name: name, Usable: true, Detail: lib.Path}
}

// trainers lists the engines of miplc train. noLibrary is why onnxruntime cannot
// be used, nil if it can.
func trainers(o *Options, noLibrary error) []Backend {
	list := []Backend{{Name: engines.Gorgonia, Usable: true, Detail: "built in"}}
	ortEngine := Backend{Name: engines.ORT, Detail: "no onnxruntime library"}
	if noLibrary == nil {
		ortEngine.Usable = true
		ortEngine.Detail = "execution providers " + strings.Join(append([]string{engines.CPU}, ort.Offered(o.Library)...), ", ")
	}
	xlaEngine := Backend{Name: engines.XLA}
	gpu, count, err := pjrt.Device()
	switch {
	case err != nil:
		xlaEngine.Detail = "no GPU: " + err.Error()
	case count > 1:
		xlaEngine.Detail = fmt.Sprintf("%s, the first of %d", gpu, count)
	default:
		xlaEngine.Detail = gpu
	}
	if err == nil {
		plugin, err := pjrt.Find(o.Plugin)
		if xlaEngine.Usable = err == nil; err != nil {
			xlaEngine.Detail += ": " + err.Error()
		} else {
			xlaEngine.Detail += ", plugin " + plugin
		}
	}
	return append(list, ortEngine, xlaEngine)
}

func folder(path string) Folder {
	info, err := os.Stat(path)
	return Folder{Path: path, Exists: err == nil && info.IsDir()}
}

func (f Findings) print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "miplc\t%s\nGo\t%s (%s/%s)\n", f.Miplc, f.Go, f.OS, f.Arch)
	for _, b := range f.Backends {
		b.print(w, "back end")
	}
	for _, b := range f.Engines {
		b.print(w, "engine")
	}
	fmt.Fprintf(w, "engine auto\t%s\n", f.Auto)
	f.Cache.print(w, "cache", "set "+pinned.EnvCache)
	f.Data.print(w, "data", "set MIPLC_DATA or --data-dir")
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(out, "\nonnxruntime libraries, in the order of the search:")
	fmt.Fprintln(w, "  place\tversion\tverdict\tpath")
	for _, c := range f.Onnxruntime {
		v := c.Version
		if v == "" {
			v = "-"
		}
		verdict := string(c.Verdict)
		if c.Detail != "" {
			verdict += " (" + c.Detail + ")"
		}
		fmt.Fprintf(w, "  %s\t%s\t%s\t%s\n", c.Origin, v, verdict, c.Path)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if len(f.Plugins) == 0 {
		_, err := fmt.Fprintln(out, "\nPJRT plugins for CUDA: none was found; pip install \"jax[cuda13]\" brings one")
		return err
	}
	fmt.Fprintln(out, "\nPJRT plugins for CUDA, in the order of the search:")
	fmt.Fprintln(w, "  place\tversion\tverdict\tpath")
	for _, c := range f.Plugins {
		v := c.Version
		if v == "" {
			v = "-"
		}
		fmt.Fprintf(w, "  %s\t%s\t%s\t%s\n", c.Origin, v, c.Verdict, c.Path)
	}
	return w.Flush()
}

func (b Backend) print(w io.Writer, what string) {
	state := "usable"
	if !b.Usable {
		state = "not usable"
	}
	fmt.Fprintf(w, "%s %s\t%s: %s\n", what, b.Name, state, b.Detail)
}

func (f Folder) print(w io.Writer, what, remedy string) {
	switch {
	case f.Path == "":
		fmt.Fprintf(w, "%s\tnone: %s\n", what, remedy)
	case f.Exists:
		fmt.Fprintf(w, "%s\t%s\n", what, f.Path)
	default:
		fmt.Fprintf(w, "%s\t%s (does not exist yet)\n", what, f.Path)
	}
}
