// Package experiments holds the experiments that ship with miplc.
package experiments

import (
	"embed"
	"io/fs"
	"sort"
	"strings"
)

//go:embed *.yaml
var shipped embed.FS

// Names lists the shipped experiments in alphabetical order.
func Names() []string {
	entries, err := fs.ReadDir(shipped, ".")
	if err != nil {
		return nil
	}
	var list []string
	for _, e := range entries {
		list = append(list, strings.TrimSuffix(e.Name(), ".yaml"))
	}
	sort.Strings(list)
	return list
}

// Source returns the text of a shipped experiment, with its comments.
func Source(name string) ([]byte, bool) {
	src, err := shipped.ReadFile(strings.TrimSuffix(name, ".yaml") + ".yaml")
	return src, err == nil
}
