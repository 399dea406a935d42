package diag

import (
	"slices"
	"strings"
)

// CheckWord reports a word that is none of the known ones, with the one that was
// probably meant. what names the place, such as "--engine" or "the colour space".
func CheckWord(what, word string, known []string) error {
	if slices.Contains(known, word) {
		return nil
	}
	d := Errorf(Pos{}, "%s cannot be %q", what, word).WithNote("known are %s", strings.Join(known, ", "))
	d.Suggestion = Suggest(word, known)
	return d
}
