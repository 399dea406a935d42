// Package specs embeds the YAML files of the shipped models and experiments. The name of each is
// its file name without ".yaml".
package specs

import (
	"embed"
	"slices"
	"strings"
)

//go:embed models/*.yaml experiments/*.yaml
var files embed.FS

// Models lists the shipped specs in alphabetical order.
func Models() []string { return names("models") }

// Experiments lists the shipped experiments in alphabetical order.
func Experiments() []string { return names("experiments") }

// Model returns the text of a shipped spec, with its comments, or false for an unknown name.
func Model(name string) ([]byte, bool) { return text("models", name) }

// Experiment returns the text of a shipped experiment, with its comments, or false for an unknown
// name.
func Experiment(name string) ([]byte, bool) { return text("experiments", name) }

func names(folder string) []string {
	entries, err := files.ReadDir(folder)
	if err != nil {
		return nil
	}
	var list []string
	for _, e := range entries {
		list = append(list, strings.TrimSuffix(e.Name(), ".yaml"))
	}
	slices.Sort(list)
	return list
}

func text(folder, name string) ([]byte, bool) {
	src, err := files.ReadFile(folder + "/" + name + ".yaml") // fs.FS rejects paths with . and ..
	return src, err == nil
}
