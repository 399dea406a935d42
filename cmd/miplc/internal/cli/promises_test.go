// What scripts use of the commands: names, flags, exit codes and fields of JSON.

package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/miplc/miplc/internal/testkit/testsupport"
)

// Commands, flags with their defaults, and exit codes remain from version to version.
func TestPromisedFlags(t *testing.T) {
	var lines []string
	for _, code := range regexp.MustCompile(`(?m)^  (\d+)   *(.+)$`).FindAllStringSubmatch(rootHelp, -1) {
		lines = append(lines, "exit code "+code[1]+": "+code[2])
	}
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		if cmd.Hidden {
			return
		}
		lines = append(lines, cmd.CommandPath())
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.Hidden {
				return
			}
			name := "--" + f.Name
			if f.Shorthand != "" {
				name = "-" + f.Shorthand + ", " + name
			}
			lines = append(lines, fmt.Sprintf("%s %s %s, default %q", cmd.CommandPath(), name, f.Value.Type(), f.DefValue))
		})
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	con, _, _ := newConsole(nil)
	walk(newRoot(con))
	testsupport.CheckPromises(t, "commands", lines)
}

// The fields of the JSON objects that commands print remain from version to version.
func TestPromisedFields(t *testing.T) {
	workshop(t)
	bad := "extends: quickstart\ntrain: {epoch: 1, lr: x}\n"
	if err := os.WriteFile("bad.yaml", []byte(bad), 0o644); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, args := range append(printers, "validate bad.yaml") {
		// schema prints a JSON Schema, whose keys are promised elsewhere; doctor depends on the machine
		if args == "" || strings.Contains(args, "help") || args == "schema" || args == "doctor" {
			continue
		}
		con, out, errs := newConsole(nil)
		Main(append(strings.Fields(args), "--json"), con)
		var object any
		if err := json.Unmarshal(out.Bytes(), &object); err != nil {
			t.Fatalf("miplc %s --json: %v\n%s%s", args, err, out, errs)
		}
		command := "miplc " + regexp.MustCompile(`^(data |runtime |gen |experiment (plan|status)|--|)\w*`).FindString(args)
		lines = append(lines, fieldsOf(command, object)...)
	}
	testsupport.CheckPromises(t, "fields", lines)
}

// fieldsOf returns the paths and types of all fields within a JSON value.
func fieldsOf(path string, value any) (lines []string) {
	switch v := value.(type) {
	case map[string]any:
		for name, field := range v {
			lines = append(lines, fieldsOf(path+" "+name, field)...)
		}
		return lines
	case []any:
		for _, item := range v {
			lines = append(lines, fieldsOf(path+"[]", item)...)
		}
		return lines
	case nil:
		return nil
	}
	return []string{fmt.Sprintf("%s: %s", path, strings.Replace(fmt.Sprintf("%T", value), "float64", "number", 1))}
}
