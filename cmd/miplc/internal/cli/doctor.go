// The command miplc doctor, which describes what works on this machine.

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/miplc/miplc/cmd/miplc/internal/console"
	"github.com/miplc/miplc/compile/native/kernel"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/libraries"
	"github.com/miplc/miplc/internal/onnxruntime"
	"github.com/miplc/miplc/runs"
	"github.com/miplc/miplc/train/engines"
	"github.com/miplc/miplc/train/xla"
	"github.com/miplc/miplc/train/xla/pjrt"
)

// doctorOptions are the options of the command.
type doctorOptions struct {
	Console *console.Console
	Library string
	DataDir string
	Plugin  string
	Try     string // execution provider to try in this process; empty: try all, each in its own process
}

// doctorFindings is the output of the command.
type doctorFindings struct {
	Verdict string `json:"verdict"` // in one line
	runs.BuildInfo
	Onnxruntime []onnxruntime.Candidate `json:"onnxruntime"` // every place looked at, in order
	Plugins     []pjrt.FoundPlugin      `json:"pjrt_plugins"`
	Backends    []component             `json:"backends"`
	Engines     []component             `json:"engines"`
	Devices     []component             `json:"devices"`   // of the engine xla
	Providers   []component             `json:"providers"` // execution providers of onnxruntime
	Auto        string                  `json:"auto"`      // engine that auto selects for miplc train, and why
	Cache       folderFacts             `json:"cache"`
	Data        folderFacts             `json:"data"`
}

// component is a back end, an engine or a device. A device of the engine xla is tried with the training of a small
// model, an execution provider of onnxruntime with a prediction. Step is the time of a training step or a prediction.
type component struct {
	Name      string  `json:"name"`
	Usable    bool    `json:"usable"`
	Detail    string  `json:"detail"`
	Compiling float64 `json:"compiling_seconds,omitempty"`
	Step      float64 `json:"step_seconds,omitempty"`
}

// folderFacts describes a folder.
type folderFacts struct {
	Path   string `json:"path"`
	Exists bool   `json:"exists"`
}

// doctorCommand returns the command.
func doctorCommand(con *console.Console) *cobra.Command {
	o := &doctorOptions{Console: con}
	cmd := &cobra.Command{
		Use:        "doctor",
		SuggestFor: []string{"check", "devices", "diagnose", "env", "info"},
		Short:      "Show which engines, libraries and devices work on this machine",
		Long: `Show which parts of miplc work on this machine, and what to install for those that do not.
Run it when a command cannot find onnxruntime or the GPU. It usually takes a few seconds. The
output has these lines:

  back end         a way to run models
  engine           a way to train models; miplc train uses "engine auto" by default
  xla on DEVICE    a device on which the engine xla can train; the command trains a small model
                   on it
  onnxruntime on   a device that predicts and serves; the command predicts with a small model
  DEVICE           on it. The results on a device must agree with those of the CPU
  cache, data      the folders for downloads and for datasets

It also lists every place where miplc looked for onnxruntime, and for the PJRT plugins that
the engine xla needs.

If onnxruntime is missing, the first training downloads it with pip or npm, or miplc runtime
install does so now. If neither tool works, or the library that you name is not usable, the
command exits with code 1. A missing GPU is not an error.`,
		Example: "  miplc doctor\n  miplc doctor --json",
		Args:    console.Args(),
		RunE:    func(cmd *cobra.Command, _ []string) error { return runDoctor(cmd.Context(), o) },
	}
	console.LibraryFlag(cmd.Flags(), &o.Library)
	cmd.Flags().StringVar(&o.DataDir, "data-dir", con.Getenv("MIPLC_DATA"), "folder of datasets (default: $MIPLC_DATA)")
	cmd.Flags().StringVar(&o.Plugin, "pjrt-plugin", "", "path of a PJRT plugin (default: $MIPLC_PJRT_PLUGIN, else an "+
		"installed one)")
	cmd.Flags().StringVar(&o.Try, tryFlag, "", "execution provider to try, and nothing else")
	cmd.Flags().Lookup(tryFlag).Hidden = true
	return cmd
}

// runDoctor collects and prints the findings.
func runDoctor(ctx context.Context, o *doctorOptions) error {
	if o.Try != "" {
		d := tryProvider(ctx, o.Library, o.Try)
		return o.Console.Result(d, func(out io.Writer) { console.Table(out, [][]string{d.row("onnxruntime on")}) })
	}
	f := doctorFindings{BuildInfo: runs.CurrentBuild(), Onnxruntime: onnxruntime.Candidates(o.Library)}
	lib, err := onnxruntime.Start(o.Library)
	missing := (*onnxruntime.NotFoundError)(nil)
	if errors.As(err, &missing) {
		f.Onnxruntime = missing.Tried
	}
	library := component{Name: "onnxruntime", Usable: err == nil}
	download := "" // how the first training installs the library, if it does
	switch {
	case err == nil && lib.Version != "":
		library.Detail = "version " + lib.Version + ", " + lib.Path
	case err == nil:
		library.Detail = lib.Path
	default:
		download, library.Detail = remedy(ctx, missing)
	}
	f.Backends = []component{library, {Name: "onnx-go", Usable: true, Detail: "built in"}}
	f.Plugins = pjrt.Candidates(o.Plugin)
	for _, kind := range []pjrt.Kind{pjrt.CPU, pjrt.CUDA} {
		f.Devices = append(f.Devices, tryXLA(ctx, kind, o.Plugin))
	}
	if err == nil {
		f.Providers = tryAll(ctx, o.Library)
	}
	f.Engines = f.engines()
	engine, why := o.automatic()
	f.Auto = engine + ": " + why
	switch {
	case library.Usable:
		f.Verdict = fmt.Sprintf("miplc is ready: it trains with %s and predicts with onnxruntime", engine)
	case download != "":
		f.Verdict = "miplc is ready: " + download
	case onnxruntime.Available():
		f.Verdict = "miplc is not ready, because it has no usable onnxruntime: " + library.Detail
	default:
		f.Verdict = "miplc works, but predicts slowly: " + library.Detail
	}
	if cache, err := libraries.CacheDir(); err == nil {
		f.Cache = folderFactsOf(cache)
	}
	f.Data = folderFactsOf(o.DataDir)
	switch {
	case download != "":
		err = nil
	case err != nil && !o.Console.JSON: // the candidates and their verdicts are printed
		err = errors.New("no onnxruntime library is usable: " + library.Detail)
	}
	return o.Console.ResultOf(err, f, f.print)
}

// remedy says what to do if onnxruntime cannot be loaded. missing is the result of the search, or nil if there was
// none. If the first training downloads the library, remedy says so in download, too.
func remedy(ctx context.Context, missing *onnxruntime.NotFoundError) (download, text string) {
	switch {
	case !onnxruntime.Available():
		return "", "build miplc with a C compiler; this build has none, so it predicts with onnx-go"
	case missing == nil:
		return "", onnxruntime.Remedy
	case missing.Named():
		return "", missing.Remedy()
	}
	pin, err := onnxruntime.Source(ctx)
	if err != nil {
		return "", err.Error()
	}
	download = fmt.Sprintf("the first training downloads onnxruntime with %s (%d MB)", pin.Via, pin.Download)
	return download, download
}

// automatic returns the engine that auto selects with its device, and the reason.
func (o *doctorOptions) automatic() (engine, why string) {
	choice, err := engines.Choose(engines.Place{Plugin: o.Plugin}, false)
	if err != nil {
		return "none", err.Error()
	}
	defer choice.Close()
	return choice.Engine + " on " + choice.Device, choice.Reason
}

// engines lists the engines of miplc train.
func (f *doctorFindings) engines() []component {
	var devices []string
	for _, d := range f.Devices {
		if d.Usable {
			devices = append(devices, d.Name)
		}
	}
	xla := component{Name: engines.XLA, Detail: "no usable device"}
	if len(devices) > 0 {
		xla.Usable, xla.Detail = true, "on the devices "+strings.Join(devices, ", ")
	}
	own := component{Name: engines.Native, Usable: true, Detail: "built in, with the kernels " + kernel.Best().Name}
	return []component{own, xla, {Name: engines.Gorgonia, Usable: true, Detail: "built in"}}
}

// tryXLA opens a device for XLA and compares training steps on it with those on the CPU.
func tryXLA(ctx context.Context, kind pjrt.Kind, plugin string) component {
	d := component{Name: string(kind)}
	b, err := xla.FirstDevice(kind, plugin)
	if err != nil {
		d.Detail = err.Error()
		return d
	}
	defer b.Close()
	compiling, step, err := engines.TryXLA(ctx, b)
	if err != nil {
		d.Detail = fmt.Sprintf("%s: a training fails: %v", b.Text, err)
		return d
	}
	d.Usable, d.Compiling, d.Step = true, compiling.Seconds(), step.Seconds()
	d.Detail = fmt.Sprintf("%s: it agrees with the CPU; a training step in %v, after compiling for %v",
		b.Text, step.Round(time.Microsecond), compiling.Round(100*time.Millisecond))
	return d
}

func folderFactsOf(path string) folderFacts {
	info, err := os.Stat(path)
	return folderFacts{Path: path, Exists: err == nil && info.IsDir()}
}

func (f doctorFindings) print(out io.Writer) {
	diag.Fprintf(out, "%s\n\n", f.Verdict)
	rows := [][]string{{"miplc", f.Miplc}, {"Go", fmt.Sprintf("%s (%s/%s)", f.Go, f.OS, f.Arch)}}
	for i, list := range [][]component{f.Backends, f.Engines, f.Devices, f.Providers} {
		for _, c := range list {
			rows = append(rows, c.row([]string{"back end", "engine", "xla on", "onnxruntime on"}[i]))
		}
	}
	console.Table(out, append(rows, []string{"engine auto", f.Auto}, f.Cache.row("cache", "set "+libraries.EnvCache),
		f.Data.row("data", "set MIPLC_DATA or --data-dir")))
	fmt.Fprintln(out, "\nonnxruntime libraries, in the order of the search:")
	rows = [][]string{{"  place", "version", "verdict", "path"}}
	for _, c := range f.Onnxruntime {
		verdict := string(c.Verdict)
		if c.Detail != "" {
			verdict += " (" + c.Detail + ")"
		}
		rows = append(rows, []string{"  " + string(c.Origin), cmp.Or(c.Version, "-"), verdict, c.Path})
	}
	console.Table(out, rows)
	if len(f.Plugins) == 0 {
		diag.Fprintf(out, "\nPJRT plugins: none was found; %s; %s\n", pjrt.Remedy(pjrt.CPU), pjrt.Remedy(pjrt.CUDA))
		return
	}
	fmt.Fprintln(out, "\nPJRT plugins, in the order of the search:")
	rows = [][]string{{"  place", "for", "version", "verdict", "path"}}
	for _, c := range f.Plugins {
		rows = append(rows, []string{"  " + c.Origin, cmp.Or(string(c.Kind), "-"), cmp.Or(c.Version, "-"), c.Verdict,
			c.Path})
	}
	console.Table(out, rows)
}

func (b component) row(what string) []string {
	state := "usable: "
	if !b.Usable {
		state = "not usable: "
	}
	return []string{what + " " + b.Name, state + b.Detail}
}

func (f folderFacts) row(what, remedy string) []string {
	switch {
	case f.Path == "":
		return []string{what, "none: " + remedy}
	case f.Exists:
		return []string{what, f.Path}
	}
	return []string{what, f.Path + " (does not exist yet)"}
}
