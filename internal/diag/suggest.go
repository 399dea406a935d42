// Suggestions for misspelt words.

package diag

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Bounds of Suggest. A word of 64 letters is not a typing error, and files with thousands of names
// must be checked quickly.
const (
	maxWord    = 64
	maxChoices = 1000
)

// Suggest returns the first choice that looks like word, see Difference, or is the same number, such as 007 for 7.0, or
// else the choice with the smallest edit distance, or "" if none is similar enough to be a typing error. Only the edit
// distances of the first thousand choices are compared.
func Suggest(word string, choices []string) string {
	if len(word) > maxWord {
		return ""
	}
	folded := Fold(word)
	for _, c := range choices {
		if c != word && Fold(c) == folded {
			return c
		}
	}
	best, bestDist := "", 1+max(1, len(word)/3)
	for _, c := range choices[:min(len(choices), maxChoices)] {
		if c == word || len(c)-len(word) >= bestDist || len(word)-len(c) >= bestDist {
			continue
		}
		// Words that share no letter are not typing errors, however short they are.
		if d := editDistance(strings.ToLower(word), strings.ToLower(c)); d < bestDist && d < max(len(word), len(c)) {
			best, bestDist = c, d
		}
	}
	return best
}

var (
	wholeNumber      = regexp.MustCompile(`^([0-9]+)(\.0*)?$`)
	scientificNumber = regexp.MustCompile(`^[0-9](\.[0-9]+)?[eE]\+?[0-9]{1,2}$`)
)

// Whole returns the digits of a whole number without leading zeros and decimals: "7" for 007, 7.0 and 7e0. It
// returns "" for other words. Programs write names of digits in these forms.
func Whole(word string) string {
	if scientificNumber.MatchString(word) {
		x, _ := strconv.ParseFloat(word, 64)
		word = strconv.FormatFloat(x, 'f', -1, 64)
	}
	m := wholeNumber.FindStringSubmatch(word)
	if m == nil {
		return ""
	}
	if digits := strings.TrimLeft(m[1], "0"); digits != "" {
		return digits
	}
	return "0"
}

// editDistance counts insertions, deletions, replacements and swaps of neighbours.
func editDistance(a, b string) int {
	prev2, prev, cur := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		cur[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cur[j] = min(cur[j], prev2[j-2]+1)
			}
		}
		prev2, prev, cur = prev, cur, prev2
	}
	return prev[len(b)]
}

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
