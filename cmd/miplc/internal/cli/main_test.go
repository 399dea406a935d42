// What all commands have in common: one object with --json, a version, and a report instead of a stack after a panic.

package cli

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/miplc/miplc/cmd/miplc/internal/console"
	"github.com/miplc/miplc/train/xla/pjrt"
)

func newConsole(env map[string]string) (con *console.Console, out, errs *bytes.Buffer) {
	out, errs = &bytes.Buffer{}, &bytes.Buffer{}
	return &console.Console{Out: out, Err: errs, Getenv: func(k string) string {
		return env[k]
	}}, out, errs
}

// A panic is reported as a bug, with the stack only if requested.
func TestPanicBecomesBug(t *testing.T) {
	for debug, wantStack := range map[string]bool{"": false, "1": true} {
		con, out, errs := newConsole(map[string]string{"MIPLC_DEBUG": debug})
		con.Getenv = func(k string) string {
			if k == "MIPLC_DATA" { // read when the commands are created
				panic("out of cheese")
			}
			return map[string]string{"MIPLC_DEBUG": debug}[k]
		}
		if code := Main([]string{"version"}, con); code != console.ExitFailed {
			t.Errorf("exit code %d", code)
		}
		text := errs.String()
		if !strings.Contains(text, "this is a bug in miplc: out of cheese") || out.Len() > 0 {
			t.Errorf("out %q, errors %q", out, text)
		}
		if strings.Contains(text, "main_test.go") != wantStack {
			t.Errorf("MIPLC_DEBUG=%q: %s", debug, text)
		}
	}
}

// With --json every command prints exactly one object on Out and nothing on Err.
func TestJSONIsOneObject(t *testing.T) {
	t.Setenv(pjrt.EnvPlugin, "nowhere") // else doctor trains with an installed one
	for _, args := range []string{
		"version", "--version", "specs", "specs demipl", "specs nothing", "schema", "doctor --library nowhere",
		"trian", "", "train", "train quickstart --epochs 3", "validate quickstart nothing.yaml",
		"validate quickstart", "data", "data synth nothing -o x.npz", "predict a b", "parity nothing",
		"runtime path --library nowhere", "version --json=maybe",
		"experiment smok -o nowhere", "experiment smoke", "report nowhere",
	} {
		con, out, errs := newConsole(nil)
		code := Main(append(strings.Fields(args), "--json"), con)
		var object map[string]any
		dec := json.NewDecoder(out)
		if err := dec.Decode(&object); err != nil {
			t.Errorf("%q: %v", args, err)
			continue
		}
		if dec.More() || errs.Len() > 0 {
			t.Errorf("%q: more than one object on Out, or text on Err: %q", args, errs)
		}
		if _, failed := object["exit"]; failed != (code != 0) {
			t.Errorf("%q: exit code %d and object %v", args, code, object)
		}
	}
}

// Most programs have the flag --version.
func TestVersionFlag(t *testing.T) {
	for _, json := range []string{"", " --json"} {
		var texts []string
		for _, args := range []string{"version", "--version"} {
			con, out, errs := newConsole(nil)
			if code := Main(strings.Fields(args+json), con); code != 0 {
				t.Errorf("%s%s: exit code %d: %s", args, json, code, errs)
			}
			texts = append(texts, out.String())
		}
		if texts[0] != texts[1] || texts[0] == "" {
			t.Errorf("different outputs %q", texts)
		}
	}
}
