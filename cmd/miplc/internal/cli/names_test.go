// Names with control characters in data and files cannot act on the terminal of the user.

package cli

import (
	"encoding/xml"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/miplc/miplc/data/bagfile"
	"github.com/miplc/miplc/data/generate"
)

// acts returns the first character of a text that a terminal would interpret.
func acts(text string) string {
	if i := strings.IndexFunc(text, func(r rune) bool {
		return r != '\n' && unicode.IsControl(r) ||
			r == '\u202e'
	}); i >= 0 {
		return text[max(0, i-20):min(len(text), i+20)]
	}
	return ""
}

// Names with control characters are shown as symbols by every command, on both streams, in figures
// and in reports. JSON contains them unchanged.
func TestHostileNames(t *testing.T) {
	workshop(t)
	set, err := generate.Prototypes(generate.DefaultPrototypes)
	if err != nil {
		t.Fatal(err)
	}
	set.ClassNames = []string{"x", "y", "z|", "\u202eback", "\u2066on"} // datasets cannot have other control characters
	if err := bagfile.Save("hostile.npz", set); err != nil {
		t.Fatal(err)
	}
	put(t, "h.yaml", "name: \"h\\u202ename\"\ndescription: \"\\u2067title\"\nextends: quickstart\ndata: {set: "+
		"hostile.npz}\n")
	put(t, "wrong.yaml", "name: \"wr\\e[2Jong\"\nextends: quickstart\n\"mod\\e[31mel\": 1\nmodel: {attention: "+
		"\"\\a\\n\"}\n")
	put(t, "t.yaml", "name: \"t\\u202e\"\ndata: [{name: \"P\\u202e\", synth: {set: prototypes, bags: 20, features: 4}}]\n"+
		"learners: [{name: \"demi\\u202epl\", spec: demipl, set: {train.epochs: 1, train.engine: gorgonia}}]\nsplits: "+
		"{count: 2}\n")
	for _, c := range []struct {
		code       int
		args, want string // want is a part of one of the streams
	}{
		{0, "validate h.yaml", "h.yaml: valid"},
		{2, "validate wrong.yaml", "mod"},
		{2, "validate no\x1b[2J.yaml", "no␛[2J.yaml"},
		{0, "data inspect hostile.npz", "| \ufffdback |"},
		{0, "data inspect hostile.npz --bag 241 --svg bag.svg", "\ufffdback \ufffdon]"},
		{0, "train h.yaml -o run --set train.epochs=1", "training h\ufffdname with"},
		{1, "train h.yaml -o run", "contains a finished run"},
		{0, "build h.yaml -o h\x1bbuild", "h␛build"},
		{0, "parity run --sizes 1", "ok"},
		{0, "predict run hostile.npz", "\ufffdback"},
		{0, "predict run hostile.npz --bag 4", "\ufffdon"},
		{1, "predict \x1brun hostile.npz", "␛run"},
		{0, "data import hostile.npz \x1b.npz", "␛.npz"},
		{0, "experiment t.yaml -o exp", "t\ufffd: 2 of 2 cells"},
		{0, "report exp", "report.html"},
	} {
		con, out, errs := newConsole(nil)
		if code := Main(strings.Split(c.args, " "), con); code != c.code {
			t.Errorf("miplc %q: exit code %d\n%s", c.args, code, errs)
		}
		for _, text := range []string{out.String(), errs.String()} {
			if at := acts(text); at != "" {
				t.Errorf("miplc %q prints %q", c.args, at)
			}
		}
		if text := out.String() + errs.String(); !strings.Contains(text, c.want) {
			t.Errorf("miplc %q: no %q in\n%s", c.args, c.want, text)
		}
	}
	con, out, _ := newConsole(nil)
	Main([]string{"data", "inspect", "hostile.npz", "--json"}, con)
	if !strings.Contains(out.String(), "\"\u202eback\"") {
		t.Errorf("JSON does not have the unchanged names:\n%s", out)
	}
	written := []string{"bag.svg", "exp/report/report.md", "exp/report/report.tex", "exp/report/report.html",
		"exp/report/results.csv"}
	found, err := filepath.Glob("run/plots/*.svg")
	if err != nil || len(found) == 0 {
		t.Errorf("no figures of the run: %v", err)
	}
	for _, name := range append(written, found...) {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if at := acts(strings.ReplaceAll(string(text), "\t", " ")); at != "" {
			t.Errorf("%s contains %q", name, at)
		}
		if filepath.Ext(name) == ".svg" {
			readXML(t, name, string(text))
		}
	}
}

func readXML(t *testing.T, name, text string) {
	t.Helper()
	for d := xml.NewDecoder(strings.NewReader(text)); ; {
		if _, err := d.Token(); err == io.EOF {
			return
		} else if err != nil {
			t.Errorf("%s: %v", name, err)
			return
		}
	}
}
