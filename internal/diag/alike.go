// Names that look alike and are different texts.

package diag

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// Canonical returns the Unicode form NFC of a name. macOS writes the names of files in another form (NFD), in which an
// accent is a separate character.
func Canonical(name string) string { return norm.NFC.String(name) }

// Differences of names that look alike.
const (
	InForm   = "in Unicode form"
	InSpaces = "in spaces or invisible characters"
)

// steps are what names that look alike may differ in, and the functions that take it away.
var steps = []struct {
	what string
	fold func(string) string
}{
	{InForm, Canonical}, {InSpaces, visible}, {"in case", strings.ToLower},
	{"in leading zeros", number},
}

// Difference says what the last difference of two names is if they look alike, such as "in case". It returns "" for
// equal names and for others.
func Difference(a, b string) string {
	for _, s := range steps {
		equal := a == b
		if a, b = s.fold(a), s.fold(b); !equal && a == b {
			return s.what
		}
	}
	return ""
}

// Fold returns the text that names which look alike have in common.
func Fold(name string) string {
	for _, s := range steps {
		name = s.fold(name)
	}
	return name
}

// visible returns a name without invisible characters, with one plain space for each run of spaces.
func visible(name string) string {
	return strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Variation_Selector, r) {
			return -1
		}
		return r
	}, name)), " ")
}

// number returns the digits of a whole number without leading zeros, and other names unchanged.
func number(name string) string {
	if digits := Whole(name); digits != "" {
		return digits
	}
	return name
}
