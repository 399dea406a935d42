// Warnings of names that look alike and are different texts.

package data

import (
	"fmt"

	"github.com/miplc/miplc/internal/diag"
)

// WarnOfAlike adds a warning for two classes, groups or bags whose names look alike. Names of bags may differ in case
// and in leading zeros. source is the file of the dataset.
func (d *Dataset) WarnOfAlike(source string) {
	any := func(string) bool { return true }
	for _, list := range []struct {
		what    string
		names   []string
		matters func(difference string) bool
		advice  string
	}{
		{"classes", d.ClassNames, any, "rename one of them if they are the same class"},
		{"groups", d.Groups, any, "rename one of them if they are the same group, so that it is in one part of the split"},
		{"bags", d.BagNames, func(difference string) bool {
			return difference == diag.InForm || difference == diag.InSpaces
		}, "rename one of them if they are the same bag"},
	} {
		first, n, text := map[string]string{}, 0, ""
		seen := map[string]bool{}
		for _, name := range list.names {
			if seen[name] {
				continue
			}
			seen[name] = true
			fold := diag.Fold(name)
			other, alike := first[fold]
			first[fold] = name
			if difference := diag.Difference(other, name); alike && list.matters(difference) {
				if n++; n == 1 {
					text = fmt.Sprintf("%s: the %s %q and %q differ only %s", source, list.what, other, name, difference)
				}
			}
		}
		if n > 1 {
			text += fmt.Sprintf(", and so do %s", diag.Count(n-1, "other pair"))
		}
		if n > 0 {
			d.Warnings = append(d.Warnings, text+"; "+list.advice)
		}
	}
}
