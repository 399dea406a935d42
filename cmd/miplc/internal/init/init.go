// Package initcmd is the command miplc init.
package initcmd

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/miplc/miplc/cmd/miplc/internal/console"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/outfile"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/specs"
)

// Names of the files that the command writes.
const (
	SpecFile   = "model.yaml"
	SchemaFile = "schema.json"
)

// modeline tells editors where the schema is.
const modeline = "# yaml-language-server: $schema=./" + SchemaFile + "\n"

// Options are the settings of the command.
type Options struct {
	Console *console.Console
	Dir     string
	From    string
}

// Result is what the command prints.
type Result struct {
	Spec   string `json:"spec"`
	Schema string `json:"schema"`
	From   string `json:"from"`
}

// Command makes the command.
func Command(con *console.Console) *cobra.Command {
	o := &Options{Console: con}
	cmd := &cobra.Command{
		Use:   "init [DIR]",
		Short: "Write a starter spec",
		Long: fmt.Sprintf(`Write %s, a commented copy of a shipped spec, and %s beside it, with
which an editor completes and checks the spec. Files that exist are left alone.`, SpecFile, SchemaFile),
		Example: "  miplc init\n  miplc init mine --from demipl",
		Args:    console.Args("[DIR]"),
		RunE: func(_ *cobra.Command, args []string) error {
			o.Dir = "."
			if len(args) > 0 {
				o.Dir = args[0]
			}
			return Run(o)
		},
	}
	cmd.Flags().StringVar(&o.From, "from", "quickstart", "shipped spec to start from, see miplc specs")
	return cmd
}

// Run writes the files.
func Run(o *Options) error {
	text, found := specs.Model(o.From)
	if !found {
		return console.Invalid(diag.Diagnostic{
			Text:       fmt.Sprintf("--from: there is no shipped spec %q", o.From),
			Suggestion: diag.Suggest(o.From, specs.Models()),
			Notes:      []string{"shipped are " + strings.Join(specs.Models(), ", ")},
		})
	}
	if !strings.HasPrefix(string(text), "# yaml-language-server:") {
		text = append([]byte(modeline), text...)
	}
	r := Result{filepath.Join(o.Dir, SpecFile), filepath.Join(o.Dir, SchemaFile), o.From}
	if _, err := os.Lstat(r.Spec); err == nil {
		return fmt.Errorf("%s exists already: name another folder", r.Spec)
	}
	if err := outfile.Write(r.Spec, text, outfile.Options{}); err != nil {
		return err
	}
	if _, err := os.Lstat(r.Schema); err != nil {
		if err := outfile.Write(r.Schema, language.Schema(), outfile.Options{}); err != nil {
			return err
		}
	}
	return o.Console.Result(r, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "%s: copy of %s\ntry: miplc validate %s\n     miplc train %s -o run\n", r.Spec, r.From, r.Spec, r.Spec)
		return err
	})
}
