// Command miplc compiles YAML specs of multi-instance partial-label models to
// trained, parity-tested ONNX files. See miplc --help.
package main

import (
	"os"

	"github.com/miplc/miplc/cmd/miplc/internal/cli"
	"github.com/miplc/miplc/cmd/miplc/internal/console"
)

func main() { os.Exit(cli.Main(os.Args[1:], console.System())) }
