// Numbers without meaning in flags are reported as wrong usage, before a command reads anything.

package cli

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/miplc/miplc/cmd/miplc/internal/console"
)

// eachFlag walks over the flags of all commands.
func eachFlag(cmd *cobra.Command, visit func(*cobra.Command, *pflag.Flag)) {
	cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) { visit(cmd, f) })
	for _, sub := range cmd.Commands() {
		eachFlag(sub, visit)
	}
}

// Every flag with a number rejects values without meaning as wrong usage, before the command reads
// or writes anything.
func TestSenselessNumbers(t *testing.T) {
	numeric := []string{"int", "uint", "uint64", "int64", "float64", "intSlice", "uintSlice", "duration"}
	senseless := []string{"-5", "-1", "NaN", "-Inf", "+Inf", "1e400", "99999999999999999999999", "many", ""}
	found := 0
	con, _, _ := newConsole(nil)
	eachFlag(newRoot(con), func(cmd *cobra.Command, f *pflag.Flag) {
		if !slices.Contains(numeric, f.Value.Type()) {
			return
		}
		found++
		for _, number := range senseless {
			con, out, errs := newConsole(nil)
			args := append(strings.Fields(cmd.CommandPath())[1:], "--"+f.Name+"="+number)
			if code := Main(args, con); code != console.ExitInvalid || out.Len() > 0 {
				t.Errorf("miplc %s: exit code %d, out %q", strings.Join(args, " "), code, out)
			}
			if !strings.Contains(errs.String(), "--"+f.Name) {
				t.Errorf("miplc %s: the flag is not named:\n%s", strings.Join(args, " "), errs)
			}
		}
	})
	if found < 25 {
		t.Errorf("only %d flags take numbers", found)
	}
}

// Zero is rejected for numbers that count from 1 or are divisors.
func TestSenselessZeros(t *testing.T) {
	for command, flags := range map[string]string{
		"data bags images": "workers max-pixels grid blob max-segments patch step sigma",
		"data synth x":     "bags positives min-size max-size features class-count",
		"parity m":         "sizes",
		"train s":          "split-numbers",
	} {
		for _, flag := range strings.Fields(flags) {
			con, _, errs := newConsole(nil)
			args := append(strings.Fields(command), "--"+flag+"=0")
			if code := Main(args, con); code != console.ExitInvalid ||
				!strings.Contains(errs.String(), `"--`+flag+`" flag: it must be`) {
				t.Errorf("%v: exit code %d\n%s", args, code, errs)
			}
		}
	}
}

// A wrong word of a flag is reported by the flag parser, with a suggestion and the known words.
func TestWrongWords(t *testing.T) {
	for args, want := range map[string][2]string{
		"train quickstart --engine natve":   {"native", "auto, native, gorgonia, xla"},
		"train quickstart --device cuad":    {"cuda", "cpu, cuda"},
		"experiment smoke --engine xlaa":    {"xla", "auto, native, gorgonia, xla"},
		"predict m b --backend onnxgo":      {"onnx-go", "onnxruntime, onnx-go"},
		"predict m b --device cup":          {"cpu", "cpu, "},
		"report x --test pairde":            {"paired", "paired, corrected"},
		"data inspect b.csv --labels mutli": {"multi", "known, multi, noisy"},
		"data bags x --generator rwo":       {"row", "row, sbn"},
		"data bags x --outside drp":         {"drop", "error, add, drop, forget"},
		"data crowd x --outside drp":        {"drop", "error, add, drop, forget"},
		"runtime install --via pi":          {"pip", "auto, pip, npm"},
	} {
		con, _, errs := newConsole(nil)
		words := strings.Fields(args)
		wrong := fmt.Sprintf("error: %s cannot be %q\n", words[len(words)-2], words[len(words)-1])
		if code := Main(words, con); code != console.ExitInvalid || !strings.HasPrefix(errs.String(), wrong) ||
			!strings.Contains(errs.String(), fmt.Sprintf("did you mean %q", want[0])) ||
			!strings.Contains(errs.String(), "known are "+want[1]) {
			t.Errorf("%s: exit code %d\n%s", args, code, errs)
		}
	}
	con, _, errs := newConsole(nil)
	if Main([]string{"train", "quickstart", "--engine", "ort"}, con); !strings.Contains(errs.String(),
		"-o DIR is missing") {
		t.Errorf("the engine of earlier versions: %s", errs)
	}
}

// help explains commands and nothing else.
func TestHelp(t *testing.T) {
	for args, want := range map[string]string{
		"help": "Available Commands", "help train": "miplc train SPEC -o DIR", "help data synth": "miplc data synth SET",
		"help data": "inspect",
	} {
		con, out, _ := newConsole(nil)
		if code := Main(strings.Fields(args), con); code != 0 || !strings.Contains(out.String(), want) {
			t.Errorf("%s: exit code %d\n%s", args, code, out)
		}
	}
	for args, want := range map[string]string{
		"help nosuch": `unknown command "nosuch" for "miplc"`, "help trian": `did you mean "train"`,
		"fit": `did you mean "train"`, "Evaluate": `did you mean "predict"`, "data info": `did you mean "inspect"`,
		"help data synht": `did you mean "synth"`, "help train x": `unknown command "x" for "miplc train"`,
	} {
		con, out, errs := newConsole(nil)
		if code := Main(strings.Fields(args), con); code != console.ExitInvalid || out.Len() > 0 ||
			!strings.Contains(errs.String(), want) {
			t.Errorf("%s: exit code %d\n%s%s", args, code, out, errs)
		}
	}
}
