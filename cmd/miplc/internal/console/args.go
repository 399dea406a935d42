// Arguments and subcommands: checks with a message that suggests what the user probably meant.

package console

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/miplc/miplc/internal/diag"
)

// Argument is an argument of a command with its name and destination.
type Argument struct {
	name string
	one  *string
	all  *[]string
}

// Arg returns a required argument, or an optional one if the name is in brackets, e.g. "[DIR]".
func Arg(name string, to *string) Argument { return Argument{name: name, one: to} }

// Arguments returns an argument for all remaining values, at least one.
func Arguments(name string, to *[]string) Argument { return Argument{name: name, all: to} }

// Args checks the number of arguments and sets their destinations.
func Args(list ...Argument) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		least, most := 0, len(list)
		for _, a := range list {
			if !strings.HasPrefix(a.name, "[") {
				least++
			}
			if a.all != nil {
				most = len(args)
			}
		}
		switch {
		case len(args) < least:
			return seeHelp(cmd, diag.Diagnostic{Text: fmt.Sprintf("%s: %s is missing", cmd.CommandPath(), list[len(args)].name)})
		case len(args) > most:
			return seeHelp(cmd, diag.Diagnostic{Text: fmt.Sprintf("%s: unexpected argument %q", cmd.CommandPath(), args[most])})
		}
		for i, a := range list[:min(len(list), len(args))] {
			if a.all != nil {
				*a.all = args[i:]
			} else {
				*a.one = args[i]
			}
		}
		return nil
	}
}

// Group sets up a command that only has subcommands: without a subcommand it prints its help; an
// unknown one is an error with a suggestion.
func Group(con *Console, cmd *cobra.Command) {
	cmd.Args = cobra.ArbitraryArgs
	cmd.DisableFlagsInUseLine = true
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return unknownCommand(cmd, args[0])
		}
		if con.JSON {
			return diag.Invalid(seeHelp(cmd, diag.Diagnostic{Text: fmt.Sprintf("%s: no command given", cmd.CommandPath())}))
		}
		return cmd.Help()
	}
}

// Help returns the help command.
func Help(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Print the help of a command",
		RunE: func(_ *cobra.Command, args []string) error {
			cmd, rest, err := root.Find(args)
			if err != nil {
				return diag.Invalid(err)
			}
			if len(rest) > 0 {
				return unknownCommand(cmd, rest[0])
			}
			return cmd.Help()
		},
	}
}

// unknownCommand suggests the command whose name in other tools is given, or with a similar name.
func unknownCommand(parent *cobra.Command, name string) error {
	d := diag.Diagnostic{Text: fmt.Sprintf("unknown command %q for %q", name, parent.CommandPath())}
	var names []string
	for _, sub := range parent.Commands() {
		if slices.Contains(sub.SuggestFor, strings.ToLower(name)) {
			d.Suggestion = sub.Name()
		}
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	d.Suggestion = cmp.Or(d.Suggestion, diag.Suggest(name, names))
	return diag.Invalid(seeHelp(parent, d))
}

// FlagError adds the probably intended flag to an error of the flag parser. Errors of Check are complete.
func FlagError(cmd *cobra.Command, err error) error {
	if wrong, ok := errors.AsType[*diag.InvalidError](err); ok {
		return wrong
	}
	d := diag.Diagnostic{Text: fmt.Sprintf("%s: %v", cmd.CommandPath(), err)}
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() == "" {
		var names []string
		add := func(f *pflag.Flag) { names = append(names, f.Name) }
		cmd.Flags().VisitAll(add)
		cmd.InheritedFlags().VisitAll(add)
		if s := diag.Suggest(unknown.GetSpecifiedName(), names); s != "" {
			d.Suggestion = "--" + s
		}
	}
	return diag.Invalid(seeHelp(cmd, d))
}

func seeHelp(cmd *cobra.Command, d diag.Diagnostic) error {
	return d.WithNote("see %s --help", cmd.CommandPath())
}

// CheckWord checks the value of an argument.
func CheckWord(argument, word string, known ...string) error {
	return diag.Invalid(diag.CheckWord(argument, word, known))
}
