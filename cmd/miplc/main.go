// Command miplc compiles YAML specs of multi-instance partial-label models to trained ONNX files
// whose predictions agree between engines. See miplc --help.
package main

import (
	"fmt"
	"os"

	"github.com/miplc/miplc/cmd/miplc/internal/cli"
	"github.com/miplc/miplc/cmd/miplc/internal/console"
)

func main() { os.Exit(run(console.System())) }

// run runs the command of the process and returns its exit code.
func run(con *console.Console) int {
	code := cli.Main(os.Args[1:], con)
	// Some file systems report a failed write only when the file is closed.
	if err := os.Stdout.Close(); err != nil && code == console.ExitDone {
		fmt.Fprintln(os.Stderr, "error: the standard output cannot be written:", err)
		code = console.ExitFailed
	}
	return code
}
