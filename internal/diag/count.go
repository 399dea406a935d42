// Numbers with their nouns.

package diag

import (
	"fmt"
	"strings"
)

// Count returns a number with its noun, which is given in the singular: "1 cell", "2 classes".
func Count(n int, noun string) string {
	switch {
	case n == 1:
		return "1 " + noun
	case strings.HasSuffix(noun, "s"):
		return fmt.Sprintf("%d %ses", n, noun)
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// CountForms returns a number with one of two phrases, for phrases that Count cannot form:
// "1 cell is", "2 cells are".
func CountForms(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
