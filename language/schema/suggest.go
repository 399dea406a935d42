// Suggestions for misspelt words and numbers.

package schema

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/miplc/miplc/internal/diag"
)

// Suggest returns the known word that was probably meant: a synonym from another
// library, or the word that differs by a typing error; "" if there is none.
func (d *Dialect) Suggest(word string, known []string) string {
	for _, meant := range d.Synonyms[plainWord(word)] {
		for _, k := range known {
			if k == meant && k != word {
				return k
			}
		}
	}
	if head, rest, found := strings.Cut(word, ":"); found { // a blank is missing
		if slices.Contains(known, head) {
			return head + ": " + rest
		}
	}
	return diag.Suggest(word, known)
}

// plainWord returns a word as the keys of Synonyms and Advice are written.
func plainWord(word string) string {
	return strings.NewReplacer("_", "", "-", "").Replace(strings.ToLower(word))
}

// noteStrangeCharacter adds a note about a character that only looks like one that YAML knows, such as a typographic
// quote.
func noteStrangeCharacter(d diag.Diagnostic, text string) diag.Diagnostic {
	for _, c := range text {
		switch {
		case strings.ContainsRune("“”„‘’‚«»", c):
			return d.WithNote("%c is not a YAML quote: write \" or '", c)
		case strings.ContainsRune("‐‑‒–—−", c):
			return d.WithNote("%c is not a minus sign: write -", c)
		case c > unicode.MaxASCII && (unicode.IsSpace(c) || unicode.Is(unicode.Cf, c)):
			return d.WithNote("it contains the character U+%04X, which only looks like a space: write an ordinary space", c)
		}
	}
	return d
}

var (
	fraction   = regexp.MustCompile(`^([0-9.]+) ?/ ?([0-9.]+)$`)
	powerOfTen = regexp.MustCompile(`^10(?:\^|\*\*)([-+]?[0-9]+)$`)
)

// plainNumber writes a number as the languages do that was written otherwise, such as 5.0, 1_000, 0,01, 70%, 1/3 or
// 10^-3; "" where text is none.
func plainNumber(text string, whole bool) string {
	v, err := strconv.ParseFloat(strings.NewReplacer("_", "", ",", ".", "%", "").Replace(text), 64)
	if strings.HasSuffix(text, "%") {
		v /= 100
	}
	if m := fraction.FindStringSubmatch(text); m != nil {
		a, erra := strconv.ParseFloat(m[1], 64)
		b, errb := strconv.ParseFloat(m[2], 64)
		if v, err = a/b, erra; err == nil {
			err = errb
		}
	}
	if m := powerOfTen.FindStringSubmatch(text); m != nil {
		v, err = strconv.ParseFloat("1e"+m[1], 64)
	}
	if err != nil || math.IsInf(v, 0) || math.IsNaN(v) || whole && v != math.Trunc(v) || math.Abs(v) > 1e15 {
		return ""
	}
	if whole {
		return strconv.FormatFloat(v, 'f', -1, 64) // 1e+06 is no whole number
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

// plainTruth is true or false where text means it.
func plainTruth(text string) string {
	switch strings.ToLower(text) {
	case "true", "yes", "on", "1", "y":
		return "true"
	case "false", "no", "off", "0", "n", "none":
		return "false"
	}
	return ""
}
