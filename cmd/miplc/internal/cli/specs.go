// The command miplc specs.

package cli

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/miplc/miplc/cmd/miplc/internal/console"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/specs"
)

// specLine is one shipped spec.
type specLine struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Text        string `json:"text,omitempty"`
}

// specsCommand returns the command.
func specsCommand(con *console.Console) *cobra.Command {
	name, full := "", false
	cmd := &cobra.Command{
		Use:        "specs [NAME]",
		SuggestFor: []string{"list", "models", "zoo", "show"},
		Short:      "List the shipped specs, or print one",
		Long: `List the shipped specs with their descriptions, or print the spec NAME. A spec is a YAML
file that describes a model and its training. In the repository, docs/spec.md shows
how to change a model, docs/spec-reference.md lists all keys, and docs/results.md compares the
accuracy of the shipped specs.

To train a shipped spec on your dataset, pass its name to miplc train (see the examples).
Or write a file mine.yaml that extends it, and run miplc train mine.yaml -o run:

  name: mine
  extends: demipl-mlp
  data: {set: bags.csv}

A printed spec may itself extend another shipped spec. --full writes out everything that it
inherits, and all defaults.

If the name is unknown, the command suggests similar ones and exits with code 2.`,
		Example: "  miplc specs\n  miplc train demipl-mlp --set data.set=bags.csv -o run\n  miplc specs demipl-md --full " +
			"> mine.yaml",
		Args: console.Args(console.Arg("[NAME]", &name)),
		RunE: func(*cobra.Command, []string) error {
			switch {
			case name != "":
				return printSpec(con, name, full)
			case full:
				return console.Usagef("miplc specs: --full needs the name of a spec")
			}
			return listSpecs(con)
		},
	}
	cmd.Flags().BoolVar(&full, "full", false, "print the complete spec: everything inherited and all defaults")
	return cmd
}

func listSpecs(con *console.Console) error {
	var list []specLine
	var rows [][]string
	for _, name := range specs.Models() {
		s, err := language.Load("builtin:" + name)
		if err != nil {
			return err
		}
		list = append(list, specLine{Name: name, Description: s.Description.V})
		rows = append(rows, []string{name, s.Description.V})
	}
	return con.Result(map[string]any{"specs": list}, func(w io.Writer) { console.Table(w, rows) })
}

func printSpec(con *console.Console, name string, full bool) error {
	text, found := specs.Model(name)
	if !found {
		return console.CheckWord("NAME", name, specs.Models()...)
	}
	s, err := language.Load("builtin:" + name)
	if err != nil {
		return err
	}
	if full {
		text = s.YAML()
	}
	return con.Result(specLine{name, s.Description.V, string(text)}, func(w io.Writer) { w.Write(text) })
}
