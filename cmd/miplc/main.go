// Command miplc compiles YAML specs of multi-instance partial-label models to
// trained, parity-tested ONNX files. See miplc --help.
package main

import (
	"fmt"
	"os"

	"github.com/miplc/miplc/cmd/miplc/internal/cli"
	"github.com/miplc/miplc/cmd/miplc/internal/console"
)

func main() {
	code := cli.Main(os.Args[1:], console.System())
	// Some file systems report only now that a write failed.
	if err := os.Stdout.Close(); err != nil && code == console.ExitDone {
		fmt.Fprintln(os.Stderr, "error: the standard output cannot be written:", err)
		code = console.ExitFailed
	}
	os.Exit(code)
}
