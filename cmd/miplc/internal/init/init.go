// Package initcmd is the command miplc init.
package initcmd

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/miplc/miplc/cmd/miplc/internal/console"
	"github.com/miplc/miplc/internal/outfile"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/specs"
)

// Names of the files that the command writes.
const (
	specFile   = "model.yaml"
	schemaFile = "schema.json"
)

// modeline names the schema for editors.
const modeline = "# yaml-language-server: $schema=./" + schemaFile + "\n"

// options are the options of the command.
type options struct {
	Console *console.Console
	Dir     string
	From    string
}

// result is the output of the command.
type result struct {
	Spec   string `json:"spec"`
	Schema string `json:"schema"`
	From   string `json:"from"`
}

// Command returns the command.
func Command(con *console.Console) *cobra.Command {
	o := &options{Console: con, Dir: "."}
	cmd := &cobra.Command{
		Use:   "init [DIR]",
		Short: "Write a commented starter spec and its JSON Schema",
		Long: fmt.Sprintf(`Write %s, a commented copy of a shipped spec, and %s, with which editors
complete and check the spec, to DIR (default: the current folder). Existing files are not
overwritten: an existing model.yaml is an error, an existing schema.json is used.`, specFile, schemaFile),
		Example: "  miplc init\n  miplc init mine --from demipl",
		Args:    console.Args(console.Arg("[DIR]", &o.Dir)),
		RunE:    func(*cobra.Command, []string) error { return run(o) },
	}
	cmd.Flags().StringVar(&o.From, "from", "quickstart", "shipped spec to copy, see miplc specs")
	return cmd
}

// run writes the files.
func run(o *options) error {
	text, found := specs.Model(o.From)
	if !found {
		return console.CheckWord("--from", o.From, specs.Models()...)
	}
	if !strings.HasPrefix(string(text), "# yaml-language-server:") {
		text = append([]byte(modeline), text...)
	}
	r := result{filepath.Join(o.Dir, specFile), filepath.Join(o.Dir, schemaFile), o.From}
	if _, err := os.Lstat(r.Spec); err == nil {
		return fmt.Errorf("%s exists already: name another folder", r.Spec)
	}
	spec, err := outfile.Create(r.Spec, outfile.Options{})
	if err != nil {
		return err
	}
	defer spec.Discard()
	if _, err := spec.Write(text); err != nil {
		return err
	}
	if _, err := os.Lstat(r.Schema); err != nil {
		if err := outfile.Write(r.Schema, language.Dialect.Schema(), outfile.Options{}); err != nil {
			return err
		}
	}
	if err := spec.Commit(); err != nil { // last, because an existing spec means that init is done
		return err
	}
	return o.Console.Resultf(r, "%s: copy of %s\n%s: for editors\ntry: miplc validate %s\n     miplc train %s -o run\n", r.Spec, r.From, r.Schema, r.Spec, r.Spec)
}
