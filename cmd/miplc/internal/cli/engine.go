// Flags that select the engine and the device, the same for all commands.

package cli

import (
	"strings"

	"github.com/spf13/pflag"

	"github.com/miplc/miplc/cmd/miplc/internal/console"
	"github.com/miplc/miplc/internal/onnxruntime"
	"github.com/miplc/miplc/train/engines"
)

// modelDevices are the devices that run a model.
var modelDevices = append([]string{onnxruntime.CPU}, onnxruntime.Providers...)

// engineFlags declares the flags that select an engine. engine starts the help of --engine.
func engineFlags(f *pflag.FlagSet, to *engines.Request, engine string) {
	f.StringVar(&to.Engine, "engine", "", engine+": "+strings.Join(engines.Names(), ", "))
	f.StringVar(&to.Device, "device", "", "device (default: a usable NVIDIA GPU for images and 16 or more runs, else "+
		"cpu): cpu, "+strings.Join(onnxruntime.Providers, ", "))
	console.LibraryFlag(f, &to.Library)
	console.Bytes(f, &to.Memory, "device-memory", "maximum memory for the engine xla, e.g. 6GiB (default: three quarters "+
		"of the memory of a GPU, or the free memory of the machine); limits how many runs train together")
}

// checkEngine reports unknown names of engines and devices.
func checkEngine(r *engines.Request) error {
	if r.Device != "" {
		if err := console.CheckWord("--device", r.Device, engines.Devices()...); err != nil {
			return err
		}
	}
	if r.Engine != "" {
		return console.CheckWord("--engine", r.Engine, engines.Names()...)
	}
	return nil
}
