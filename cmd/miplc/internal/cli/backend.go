// Flags for models, back ends and engines: opening a model, and installing onnxruntime for commands that need it.

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
	"github.com/miplc/miplc/internal/contract"
	"github.com/miplc/miplc/internal/libraries"
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
	Device  string // execution provider of onnxruntime; empty: the CPU
}

// Add declares the flags.
func (f *backendFlags) Add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.Backend, "backend", contract.BackendORT, "back end that runs the model: "+contract.BackendORT+
		" or "+contract.BackendONNXGo)
	console.OneOf(cmd.Flags(), "backend", contract.BackendORT, contract.BackendONNXGo)
	console.LibraryFlag(cmd.Flags(), &f.Library)
	cmd.Flags().StringVar(&f.Device, "device", "", "device (default: cpu): "+strings.Join(modelDevices, ", "))
	console.OneOf(cmd.Flags(), "device", modelDevices...)
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

// Open opens a model file, or the model in the folder of a run. more are options of the command.
func (f *backendFlags) Open(path string, more ...runtime.Option) (*runtime.Model, error) {
	device := cmp.Or(f.Device, onnxruntime.CPU)
	if f.Backend == contract.BackendONNXGo && device != onnxruntime.CPU {
		return nil, console.Usagef("--device %s belongs to the back end %s", device, contract.BackendORT)
	}
	path, err := findModel(path)
	if err != nil {
		return nil, err
	}
	options := append([]runtime.Option{runtime.WithLibrary(f.Library)}, more...)
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
// the environment names a library. If onnxruntime is not required, a library that cannot be installed or loaded is a
// warning.
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
	var missing *onnxruntime.NotFoundError
	if !errors.As(err, &missing) || !missing.Installed() {
		con.Notef("onnxruntime, which checks models, is not on this machine: installing version %s", onnxruntime.Version)
		_, err = onnxruntime.InstallLibrary(ctx, libraries.InstallOptions{Progress: con.Progress()})
		if err == nil {
			_, err = onnxruntime.Start(library)
		}
	}
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
func placeFlags(con *console.Console, f *pflag.FlagSet, to *engines.Place, engine string) {
	to.Open = con.OpenDevice
	f.StringVar(&to.Engine, "engine", "", engine+": "+strings.Join(engines.Names(), ", "))
	console.Check(f, "engine", engines.CheckName)
	f.StringVar(&to.Device, "device", "", "device: cpu or cuda (default: cuda for images if an NVIDIA GPU is usable, "+
		"else cpu)")
	console.Check(f, "device", to.CheckDevice)
	console.Bytes(f, &to.Memory, "device-memory", "maximum memory for the engine xla, e.g. 6GiB (default: three quarters "+
		"of the memory of a GPU, or the free memory of the machine); limits how many runs train together")
}
