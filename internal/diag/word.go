// One of several words.

package diag

import (
	"slices"
	"strings"
)

// CheckWord returns an error if word is not among the known ones, with the most similar one as a
// suggestion. The argument what names the source of the word in the message, e.g. "--engine".
func CheckWord(what, word string, known []string) error {
	if slices.Contains(known, word) {
		return nil
	}
	d := Errorf(Pos{}, "%s cannot be %q", what, word).WithNote("known are %s", strings.Join(known, ", "))
	d.Suggestion = Suggest(word, known)
	return d
}
