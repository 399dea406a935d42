// Package doctor is the command miplc doctor: what this machine offers.
package doctor

import (
	"errors"
	"fmt"
	"io"
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/miplc/miplc/cmd/miplc/internal/console"
	"github.com/miplc/miplc/cmd/miplc/internal/version"
	"github.com/miplc/miplc/runtime/ortlib"
)

// Options are the settings of the command.
type Options struct {
	Console *console.Console
	Library string
	DataDir string
}

// Findings is what the command prints.
type Findings struct {
	version.Info
	Onnxruntime []ortlib.Candidate `json:"onnxruntime"` // every place looked at, in order
	Backends    []Backend          `json:"backends"`
	Cache       Folder             `json:"cache"`
	Data        Folder             `json:"data"`
}

// Backend is one way to run a model.
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
		Short: "Show what this machine offers: onnxruntime libraries, back ends, folders",
		Long: `Show the versions of miplc and Go, every place where an onnxruntime library was
looked for with its version and verdict, the back ends, the cache and the data
folder. The exit code is 1 when no onnxruntime library is usable.`,
		Example: "  miplc doctor\n  miplc doctor --json",
		Args:    console.Args(),
		RunE:    func(*cobra.Command, []string) error { return Run(o) },
	}
	cmd.Flags().StringVar(&o.Library, "library", "", "onnxruntime library, or a folder that holds it")
	cmd.Flags().StringVar(&o.DataDir, "data-dir", con.Getenv("MIPLC_DATA"), "folder of data sets")
	return cmd
}

// Run looks around and prints.
func Run(o *Options) error {
	f := Findings{Info: version.Current(), Onnxruntime: ortlib.Candidates(ortlib.Options{Path: o.Library, Verify: true})}
	lib, err := ortlib.Find(ortlib.Options{Path: o.Library})
	f.Backends = []Backend{onnxruntime(lib, err), {Name: "onnx-go", Usable: true, Detail: "built in"}}
	cache, cacheErr := ortlib.CacheDir()
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

func folder(path string) Folder {
	info, err := os.Stat(path)
	return Folder{Path: path, Exists: err == nil && info.IsDir()}
}

func (f Findings) print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "miplc\t%s\nGo\t%s (%s/%s)\n", f.Miplc, f.Go, f.OS, f.Arch)
	for _, b := range f.Backends {
		state := "usable"
		if !b.Usable {
			state = "not usable"
		}
		fmt.Fprintf(w, "back end %s\t%s: %s\n", b.Name, state, b.Detail)
	}
	f.Cache.print(w, "cache", "set "+ortlib.EnvCache)
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
	return w.Flush()
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
