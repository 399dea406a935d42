// The command miplc specs.

package cli

import (
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/miplc/miplc/cmd/miplc/internal/console"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/language/specs"
)

// specsOptions are the options of the command.
type specsOptions struct {
	Console *console.Console
	Name    string // empty: list all
	Full    bool
}

// specLine is one shipped spec.
type specLine struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Text        string `json:"text,omitempty"`
}

// specsCommand returns the command.
func specsCommand(con *console.Console) *cobra.Command {
	o := &specsOptions{Console: con}
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
		Args: console.Args(console.Arg("[NAME]", &o.Name)),
		RunE: func(*cobra.Command, []string) error { return runSpecs(o) },
	}
	cmd.Flags().BoolVar(&o.Full, "full", false, "print the complete spec: everything inherited and all defaults")
	return cmd
}

// runSpecs lists the specs or prints one.
func runSpecs(o *specsOptions) error {
	if o.Name != "" {
		return printOne(o)
	}
	if o.Full {
		return console.Usagef("miplc specs: --full needs the name of a spec")
	}
	var list []specLine
	for _, name := range specs.Models() {
		s, err := language.Load("builtin:" + name)
		if err != nil {
			return err
		}
		list = append(list, specLine{Name: name, Description: s.Description.V})
	}
	return o.Console.Result(map[string]any{"specs": list}, func(out io.Writer) error {
		w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
		for _, s := range list {
			diag.Fprintf(w, "%s\t%s\n", s.Name, s.Description)
		}
		return w.Flush()
	})
}

func printOne(o *specsOptions) error {
	text, found := specs.Model(o.Name)
	if !found {
		return console.CheckWord("NAME", o.Name, specs.Models()...)
	}
	s, err := language.Load("builtin:" + o.Name)
	if err != nil {
		return err
	}
	if o.Full {
		text = s.YAML()
	}
	return o.Console.Result(specLine{o.Name, s.Description.V, string(text)}, func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	})
}
