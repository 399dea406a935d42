// The command miplc init.

package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/miplc/miplc/cmd/miplc/internal/console"
	"github.com/miplc/miplc/internal/fileio"
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

// initCommand returns the command.
func initCommand(con *console.Console) *cobra.Command {
	dir, from := ".", ""
	cmd := &cobra.Command{
		Use:        "init [DIR]",
		SuggestFor: []string{"new", "create", "template"},
		Short:      "Write a commented starter spec and its JSON Schema",
		Long: fmt.Sprintf(`Write a starter spec (%s) and its JSON Schema (%s) to DIR, which is created if
necessary (default: the current folder). The spec is a copy, with comments, of a spec that
miplc ships. Editors with a YAML language server use the schema to complete and check it.

The default, quickstart, trains on generated bags and needs no data. In a copy of another
spec, set data.set to the path of your dataset. Then run, with the DIR that you gave:

  miplc validate DIR/model.yaml
  miplc train DIR/model.yaml -o run

If model.yaml exists, the command writes nothing and exits with code 1; an existing
schema.json is kept. If the name after --from is unknown, the command exits with code 2.`, specFile, schemaFile),
		Example: "  miplc init\n  miplc init mine --from demipl-mlp",
		Args:    console.Args(console.Arg("[DIR]", &dir)),
		RunE:    func(*cobra.Command, []string) error { return runInit(con, dir, from) },
	}
	cmd.Flags().StringVar(&from, "from", "quickstart", "shipped spec to copy, see miplc specs")
	return cmd
}

// runInit writes the files.
func runInit(con *console.Console, dir, from string) error {
	if ext := filepath.Ext(dir); ext == ".yaml" || ext == ".yml" {
		return console.Usagef("miplc init: %s is not the name of a folder: the command writes %s to the folder DIR", dir,
			specFile)
	}
	text, found := specs.Model(from)
	if !found {
		return console.CheckWord("--from", from, specs.Models()...)
	}
	if !strings.HasPrefix(string(text), "# yaml-language-server:") {
		text = append([]byte(modeline), text...)
	}
	spec, schema, kept := filepath.Join(dir, specFile), filepath.Join(dir, schemaFile), ""
	if _, err := os.Lstat(spec); err == nil {
		return fmt.Errorf("%s exists already: name another folder", spec)
	}
	out, err := fileio.Create(spec, fileio.WriteOptions{})
	if err != nil {
		return err
	}
	defer out.Discard()
	if _, err := out.Write(text); err != nil {
		return err
	}
	if _, err := os.Lstat(schema); err == nil {
		kept = " (existing file kept)"
	} else if err := fileio.Write(schema, language.Dialect.Schema(), fileio.WriteOptions{}); err != nil {
		return err
	}
	if err := out.Commit(); err != nil { // last, because an existing spec means that init is done
		return err
	}
	return con.Resultf(map[string]string{"spec": spec, "schema": schema, "from": from},
		"%s: copy of %s\n%s: for editors%s\ntry: miplc validate %s\n     miplc train %s -o run\n", spec, from, schema, kept,
		spec, spec)
}
