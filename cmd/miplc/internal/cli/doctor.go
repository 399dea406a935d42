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
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/miplc/miplc/cmd/miplc/internal/console"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/native"
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
	Plugins     []pjrt.Candidate        `json:"pjrt_plugins"`
	Backends    []component             `json:"backends"`
	Engines     []component             `json:"engines"`
	Devices     []deviceFacts           `json:"devices"`   // of the engine xla
	Providers   []deviceFacts           `json:"providers"` // execution providers of onnxruntime
	Auto        string                  `json:"auto"`      // engine that auto selects for miplc train, and why
	Cache       folderFacts             `json:"cache"`
	Data        folderFacts             `json:"data"`
}

// component is a back end, an engine or a device.
type component struct {
	Name   string `json:"name"`
	Usable bool   `json:"usable"`
	Detail string `json:"detail"`
}

// deviceFacts is a device of the engine xla or an execution provider of onnxruntime, tried
// with the training of a small model.
type deviceFacts struct {
	component
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
  xla on DEVICE,   a device on which that engine can train. The command trains a small model
  ort on DEVICE    on it. For devices of onnxruntime, such as webgpu, the results must agree
                   with those of the CPU
  cache, data      the folders for downloads and for datasets

It also lists every place where miplc looked for onnxruntime, and for the PJRT plugins that
the engine xla needs.

If no onnxruntime library is usable, the command exits with code 1; miplc runtime install
downloads one. A missing GPU is not an error.`,
		Example: "  miplc doctor\n  miplc doctor --json",
		Args:    console.Args(),
		RunE:    func(cmd *cobra.Command, _ []string) error { return runDoctor(cmd.Context(), o) },
	}
	console.LibraryFlag(cmd.Flags(), &o.Library)
	cmd.Flags().StringVar(&o.DataDir, "data-dir", con.Getenv("MIPLC_DATA"), "folder of datasets (default: $MIPLC_DATA)")
	cmd.Flags().StringVar(&o.Plugin, "pjrt-plugin", "", "path of a PJRT plugin (default: $MIPLC_PJRT_PLUGIN, else an "+
		"installed one)")
	cmd.Flags().StringVar(&o.Try, tryFlag, "", "execution provider to try, and nothing else")
	_ = cmd.Flags().MarkHidden(tryFlag) // it exists
	return cmd
}

// runDoctor collects and prints the findings.
func runDoctor(ctx context.Context, o *doctorOptions) error {
	if o.Try != "" {
		d := tryProvider(ctx, o.Library, o.Try)
		return o.Console.Result(d, func(out io.Writer) error { d.print(out, "ort on"); return nil })
	}
	f := doctorFindings{BuildInfo: runs.CurrentBuild(), Onnxruntime: onnxruntime.Candidates(o.Library)}
	lib, err := onnxruntime.Start(o.Library)
	remedy := onnxruntime.Remedy
	if !onnxruntime.Available() {
		remedy = "build miplc with a C compiler; this build has none, so it trains with gorgonia and predicts with onnx-go"
	}
	if missing := (*onnxruntime.NotFoundError)(nil); errors.As(err, &missing) {
		remedy, f.Onnxruntime = missing.Remedy(), missing.Tried
	}
	f.Backends = []component{libraryState(lib, err, remedy), {Name: "onnx-go", Usable: true, Detail: "built in"}}
	f.Plugins = pjrt.Candidates(o.Plugin)
	f.Devices = []deviceFacts{deviceFactsOf(ctx, pjrt.CPU, o.Plugin, o.Library), deviceFactsOf(ctx, pjrt.CUDA, o.Plugin,
		o.Library)}
	if err == nil {
		f.Providers = tryAll(ctx, o.Library)
	}
	f.Engines = append(ortAndGorgonia(f.Providers, err), xlaEngine(f.Devices))
	if choice, err := engines.Choose(engines.Request{Library: o.Library, Plugin: o.Plugin}); err == nil {
		f.Auto = fmt.Sprintf("%s on %s: %s", choice.Engine, choice.Device, choice.Reason)
		choice.Close()
	} else {
		reason, _, _ := strings.Cut(err.Error(), "; tried:")
		f.Auto = "none: " + reason
	}
	f.Verdict = verdictOf(f.Auto, f.Backends[0], remedy)
	cache, cacheErr := native.CacheDir()
	if cacheErr == nil {
		f.Cache = folderFactsOf(cache)
	}
	f.Data = folderFactsOf(o.DataDir)
	if err != nil && !o.Console.JSON { // the candidates and their verdicts are printed
		err = errors.New("no onnxruntime library is usable: " + remedy)
	}
	return o.Console.ResultOf(err, f, f.print)
}

func libraryState(lib onnxruntime.Library, err error, remedy string) component {
	if err != nil {
		return component{Name: "onnxruntime", Detail: remedy}
	}
	name := "onnxruntime"
	if lib.Version != "" {
		return component{Name: name, Usable: true, Detail: "version " + lib.Version + ", " + lib.Path}
	}
	return component{Name: name, Usable: true, Detail: lib.Path}
}

// verdictOf says in one line what works on this machine, given the engine of auto and its reason, onnxruntime as a back
// end, and what to do without it.
func verdictOf(auto string, library component, remedy string) string {
	engine, _, _ := strings.Cut(auto, ":")
	switch {
	case library.Usable:
		return fmt.Sprintf("miplc is ready: it trains with %s and predicts with onnxruntime", engine)
	case onnxruntime.Available():
		return "miplc is not ready, because it has no usable onnxruntime: " + remedy
	}
	return "miplc works, but slowly: " + remedy
}

// ortAndGorgonia lists the engines of miplc train except xla. noLibrary is why onnxruntime cannot be
// used, or nil.
func ortAndGorgonia(providers []deviceFacts, noLibrary error) []component {
	list := []component{{Name: engines.Gorgonia, Usable: true, Detail: "built in"}}
	ortEngine := component{Name: engines.ORT, Detail: "no onnxruntime library"}
	if errors.Is(noLibrary, onnxruntime.ErrNoCgo) {
		ortEngine.Detail = "this build has no cgo"
	}
	if noLibrary == nil {
		ortEngine.Usable = true
		ortEngine.Detail = "devices " + strings.Join(append([]string{engines.CPU}, usableDevices(providers)...), ", ")
	}
	return append(list, ortEngine)
}

// usableDevices returns the names of the devices that work.
func usableDevices(devices []deviceFacts) []string {
	var names []string
	for _, d := range devices {
		if d.Usable {
			names = append(names, d.Name)
		}
	}
	return names
}

// deviceFactsOf opens a device for XLA and compares training steps on it with those on the CPU.
func deviceFactsOf(ctx context.Context, kind pjrt.Kind, plugin, library string) deviceFacts {
	d := deviceFacts{component: component{Name: string(kind)}}
	b, err := xla.Open(kind, plugin)
	if err != nil {
		d.Detail = err.Error()
		return d
	}
	defer b.Close()
	compiling, step, err := engines.TryXLA(ctx, library, b)
	if err != nil {
		d.Detail = fmt.Sprintf("%s: a training fails: %v", b.Text, err)
		return d
	}
	d.Usable, d.Compiling, d.Step = true, compiling.Seconds(), step.Seconds()
	d.Detail = fmt.Sprintf("%s: it agrees with the CPU; a training step in %v, after compiling for %v",
		b.Text, step.Round(time.Microsecond), compiling.Round(100*time.Millisecond))
	return d
}

// xlaEngine returns the engine xla, which is usable if one of its devices is.
func xlaEngine(devices []deviceFacts) component {
	names := usableDevices(devices)
	if len(names) == 0 {
		return component{Name: engines.XLA, Detail: "no usable device"}
	}
	return component{Name: engines.XLA, Usable: true, Detail: "on the devices " + strings.Join(names, ", ")}
}

func folderFactsOf(path string) folderFacts {
	info, err := os.Stat(path)
	return folderFacts{Path: path, Exists: err == nil && info.IsDir()}
}

func (f doctorFindings) print(out io.Writer) error {
	diag.Fprintf(out, "%s\n\n", f.Verdict)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	diag.Fprintf(w, "miplc\t%s\nGo\t%s (%s/%s)\n", f.Miplc, f.Go, f.OS, f.Arch)
	for _, b := range f.Backends {
		b.print(w, "back end")
	}
	for _, b := range f.Engines {
		b.print(w, "engine")
	}
	for _, d := range f.Devices {
		d.print(w, "xla on")
	}
	for _, p := range f.Providers {
		p.print(w, "ort on")
	}
	diag.Fprintf(w, "engine auto\t%s\n", f.Auto)
	f.Cache.print(w, "cache", "set "+native.EnvCache)
	f.Data.print(w, "data", "set MIPLC_DATA or --data-dir")
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(out, "\nonnxruntime libraries, in the order of the search:")
	fmt.Fprintln(w, "  place\tversion\tverdict\tpath")
	for _, c := range f.Onnxruntime {
		verdict := string(c.Verdict)
		if c.Detail != "" {
			verdict += " (" + c.Detail + ")"
		}
		diag.Fprintf(w, "  %s\t%s\t%s\t%s\n", c.Origin, cmp.Or(c.Version, "-"), verdict, c.Path)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if len(f.Plugins) == 0 {
		_, err := diag.Fprintf(out, "\nPJRT plugins: none was found; %s; %s\n", pjrt.Remedy(pjrt.CPU), pjrt.Remedy(pjrt.CUDA))
		return err
	}
	fmt.Fprintln(out, "\nPJRT plugins, in the order of the search:")
	fmt.Fprintln(w, "  place\tfor\tversion\tverdict\tpath")
	for _, c := range f.Plugins {
		diag.Fprintf(w, "  %s\t%s\t%s\t%s\t%s\n", c.Origin, cmp.Or(string(c.Kind), "-"), cmp.Or(c.Version, "-"), c.Verdict,
			c.Path)
	}
	return w.Flush()
}

func (b component) print(w io.Writer, what string) {
	state := "usable"
	if !b.Usable {
		state = "not usable"
	}
	diag.Fprintf(w, "%s %s\t%s: %s\n", what, b.Name, state, b.Detail)
}

func (f folderFacts) print(w io.Writer, what, remedy string) {
	switch {
	case f.Path == "":
		diag.Fprintf(w, "%s\tnone: %s\n", what, remedy)
	case f.Exists:
		diag.Fprintf(w, "%s\t%s\n", what, f.Path)
	default:
		diag.Fprintf(w, "%s\t%s (does not exist yet)\n", what, f.Path)
	}
}
