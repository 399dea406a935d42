// Opens models and chooses engines from flags, reads data for models, and installs
// onnxruntime for commands that need it.

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/miplc/miplc/cmd/miplc/internal/console"
	"github.com/miplc/miplc/compile/encoder"
	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/data/bagfile"
	"github.com/miplc/miplc/data/formats"
	"github.com/miplc/miplc/data/imagebags"
	"github.com/miplc/miplc/internal/contract"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/native"
	"github.com/miplc/miplc/internal/onnxruntime"
	"github.com/miplc/miplc/runs"
	"github.com/miplc/miplc/runtime"
	"github.com/miplc/miplc/runtime/onnxgo"
	"github.com/miplc/miplc/train/engines"
)

// backendFlags are the flags that select a back end.
type backendFlags struct {
	Backend string
	Library string
	Device  string           // execution provider of onnxruntime; empty: the CPU
	Options []runtime.Option // set by the command, in addition to the flags
}

// Add declares the flags.
func (f *backendFlags) Add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.Backend, "backend", contract.BackendORT, "back end that runs the model: "+contract.BackendORT+
		" or "+contract.BackendONNXGo)
	console.LibraryFlag(cmd.Flags(), &f.Library)
	cmd.Flags().StringVar(&f.Device, "device", "", "device (default: cpu): "+strings.Join(modelDevices, ", "))
}

// modelPath returns the path of a model, given a file or the folder of a run.
func modelPath(path string) string {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return runs.ModelPath(path)
	}
	return path
}

// findModel returns modelPath(path), or an error if there is no such file.
func findModel(path string) (string, error) {
	file := modelPath(path)
	switch _, err := os.Stat(file); {
	case errors.Is(err, fs.ErrNotExist) && file != path:
		return "", fmt.Errorf("%s has no %s: give a model file or the folder of a finished run", path, runs.ModelFile)
	case errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("there is no model or run %s: give a model file (.onnx) or the folder that miplc train wrote",
			path)
	}
	return file, nil
}

// openData reads bags for a model: images, which it cuts if the model was trained on pieces of images, or
// a dataset. Of the metadata it needs Classes, Columns, Encoder, Generator and Threshold.
func openData(ctx context.Context, paths []string, o bagfile.Reading, m *contract.Metadata) (*data.Dataset, error) {
	o = readingFor(m, o)
	switch images := imagebags.AreImages(paths); {
	case images && cuts(m):
		r, err := imagebags.ParseRecipe(m.Generator)
		if err != nil {
			return nil, fmt.Errorf("the model was trained on instances of another version of miplc: %w", err)
		}
		d, err := r.Open(ctx, paths, o)
		if err != nil || m.Encoder == nil {
			return d, err
		}
		return encoder.OfPixels(d, m.Encoder)
	case images && m.Encoder == nil:
		return nil, diag.Errorf(diag.Pos{File: paths[0]}, "images, but the model takes a file of features (%s)",
			formats.Readable().List()).
			WithNote("a model that was trained on a file of miplc data bags takes images, and so does one with data.encoder, " +
				"unless data.encoder.export is model")
	case !images && len(paths) > 1:
		return nil, diag.Errorf(diag.Pos{File: paths[1]}, "only images, folders and archives of images may be several; "+
			"give one file of bags")
	}
	var d *data.Dataset
	var err error
	if m.Encoder != nil {
		d, err = encoder.OpenImages(paths, m.Encoder, o)
	} else {
		d, err = bagfile.OpenWith(paths[0], o)
	}
	if err != nil {
		return nil, err
	}
	return d, checkGenerator(paths[0], m, imagebags.RecipeOf(d))
}

// cuts reports whether a model cuts each image into the instances of a bag.
func cuts(m *contract.Metadata) bool {
	return m.Generator != "" && m.Generator != imagebags.WholeImages
}

// checkGenerator reports a dataset whose instances were made in another way than those of the training.
func checkGenerator(path string, m *contract.Metadata, have string) error {
	if have == "" || m.Generator == "" || have == m.Generator {
		return nil
	}
	said := func(recipe string) string {
		if recipe == imagebags.WholeImages {
			return "whole images"
		}
		return fmt.Sprintf("the generator %q", recipe)
	}
	d := diag.Errorf(diag.Pos{File: path}, "the instances are %s, the model was trained on %s", said(have),
		said(m.Generator))
	if cuts(m) {
		return d.WithNote("give the images themselves, or their folder: the model cuts them")
	}
	return d.WithNote("give a folder with the images of a bag, or a table of such folders")
}

// readingFor returns the options for reading data for a model: its classes, its columns, so that
// features are found by name, and the kind of its labels.
func readingFor(m *contract.Metadata, o bagfile.Reading) bagfile.Reading {
	o.Columns.ModelClasses = m.Classes
	if m.Threshold != nil {
		o.Labels = bagfile.MultiLabels
	}
	if columns := m.Columns; columns != nil {
		o.Columns.ModelFeatures = columns.Features
		o.Columns.Roles = bagfile.Roles{Bag: columns.Bag, Label: columns.Label, Candidates: columns.Candidates,
			InstanceLabel: columns.InstanceLabel,
			Group:         cmp.Or(o.Columns.Roles.Group, columns.Group)}
		o.NoCandidates = columns.KnownLabels
		if len(o.Columns.Coordinates) == 0 {
			o.Columns.Coordinates = columns.Coordinates
		}
	}
	return o
}

// Open opens a model file, or the model in the folder of a run.
func (f *backendFlags) Open(path string) (*runtime.Model, error) {
	device := cmp.Or(f.Device, onnxruntime.CPU)
	if err := cmp.Or(console.CheckWord("--backend", f.Backend, contract.BackendORT, contract.BackendONNXGo),
		console.CheckWord("--device", device, modelDevices...)); err != nil {
		return nil, err
	}
	if f.Backend == contract.BackendONNXGo && device != onnxruntime.CPU {
		return nil, console.Usagef("--device %s belongs to the back end %s", device, contract.BackendORT)
	}
	path, err := findModel(path)
	if err != nil {
		return nil, err
	}
	options := append([]runtime.Option{runtime.WithLibrary(f.Library)}, f.Options...)
	if f.Backend == contract.BackendONNXGo {
		options = append(options, runtime.WithBackend(onnxgo.Backend()))
	}
	if device != onnxruntime.CPU {
		options = append(options, runtime.WithProvider(device, nil))
	}
	m, err := runtime.Open(path, options...)
	if errors.Is(err, runtime.ErrContract) {
		return nil, fmt.Errorf("%w; a model is a file model.onnx that miplc train wrote, or its folder", err)
	}
	return m, err
}

// ensureLibrary loads onnxruntime, and installs it if none is found. It installs nothing if the flag or
// the environment names a library. If onnxruntime is not required, a failed installation is a warning.
func ensureLibrary(ctx context.Context, con *console.Console, library string, required bool) error {
	if !onnxruntime.Available() {
		con.Notef("this program was built with CGO_ENABLED=0: models are checked in the interpreter, gorgonia and " +
			"onnx-go, and not in onnxruntime")
		return nil
	}
	_, err := onnxruntime.Start(library)
	named := library + con.Getenv(onnxruntime.EnvLibrary) + con.Getenv(onnxruntime.EnvLibraryOwn)
	if err == nil || named != "" {
		return err
	}
	con.Notef("onnxruntime, which checks models, is not on this machine: installing version %s",
		onnxruntime.Version)
	_, err = onnxruntime.InstallLibrary(ctx, native.InstallOptions{Progress: con.Progress()})
	if err == nil || required || ctx.Err() != nil {
		return err
	}
	con.Notef("warning: %v\nmiplc continues without onnxruntime: models are checked in the interpreter, gorgonia "+
		"and onnx-go", err)
	return nil
}

// modelDevices are the devices that run a model.
var modelDevices = append([]string{onnxruntime.CPU}, onnxruntime.Providers...)

// placeFlags declares the flags that say where to train. engine starts the help of --engine.
func placeFlags(f *pflag.FlagSet, to *engines.Place, engine string) {
	f.StringVar(&to.Engine, "engine", "", engine+": "+strings.Join(engines.Names(), ", "))
	f.StringVar(&to.Device, "device", "", "device: cpu or cuda (default: cuda for images if an NVIDIA GPU is usable, "+
		"else cpu)")
	console.Bytes(f, &to.Memory, "device-memory", "maximum memory for the engine xla, e.g. 6GiB (default: three quarters "+
		"of the memory of a GPU, or the free memory of the machine); limits how many runs train together")
}

// checkPlace reports unknown names of engines and devices.
func checkPlace(p *engines.Place) error {
	if err := engines.CheckDevice(cmp.Or(p.Device, engines.CPU)); err != nil {
		return console.Usagef("--device: %v", err)
	}
	if p.Engine == engines.ORT { // of earlier versions
		return nil
	}
	return console.CheckWord("--engine", cmp.Or(p.Engine, engines.Auto), engines.Names()...)
}
