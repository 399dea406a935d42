// A command whose output cannot be written, as on a full disk, fails with an error.

package cli

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/miplc/miplc/cmd/miplc/internal/console"
	"github.com/miplc/miplc/train/xla/pjrt"
)

// full is a standard output on a full disk.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

// printers are all commands that end without a signal, with arguments for the folder of workshop.
var printers = []string{
	"", "help train", "train --help", "version", "--version", "specs", "specs demipl", "schema", "doctor", "runtime path",
	"init new", "validate quickstart m.yaml", "build quickstart -o b", "train quickstart -o t --set train.epochs=1",
	"train quickstart -o s --set train.epochs=1 --seeds 1,2",
	"predict build bags.csv", "parity build", "parity build/model.onnx --sizes 2", "export build --docker d",
	"gen go build -o g",
	"data synth prototypes --bags 10 -o s.npz", "data bags --generator row images -o b.npz",
	"data crowd w1.csv w2.csv w3.csv -o c.csv",
	"data import bags.csv i.csv", "data inspect bags.csv",
	"experiment e.yaml -o x", "experiment plan e.yaml -o xp", "experiment status done", "report done -o r",
}

// A command whose result cannot be written fails with an error.
func TestFullStandardOutput(t *testing.T) {
	workshop(t)
	t.Setenv("MIPLC_DOCTOR_TRYING", "1") // else doctor starts this program, all tests, for each device
	t.Setenv(pjrt.EnvPlugin, "nowhere")  // else doctor trains with an installed one
	for _, args := range printers {
		for _, flags := range []string{"", "--json"} {
			if flags != "" && (args == "" || strings.Contains(args, "help")) {
				continue
			}
			if flags != "" && strings.Contains(args, " -o ") {
				args = strings.ReplaceAll(args, " -o ", " -o json-")
			}
			args = strings.Replace(args, "init new", "init new2", 1)
			con, _, errs := newConsole(nil)
			con.Out = full{}
			code := Main(append(strings.Fields(args), strings.Fields(flags)...), con)
			if code != console.ExitFailed || !strings.Contains(errs.String(), "no space left on device") {
				t.Errorf("miplc %s %s: exit code %d\n%s", args, flags, code, errs)
			}
		}
	}
	con, _, _ := newConsole(nil)
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
		path := strings.TrimSpace(strings.TrimPrefix(cmd.CommandPath(), "miplc"))
		tried := slices.ContainsFunc(printers, func(args string) bool { return strings.HasPrefix(args+" ", path+" ") })
		if !tried && path != "serve" && path != "runtime install" { // runtime install needs the network
			t.Errorf("miplc %s is not tested", path)
		}
	}
	walk(newRoot(con))
}
