package diag

import (
	"fmt"
	"strings"
)

// Count returns a number with its noun, which is given in the singular: "1 cell",
// "2 classes".
func Count(n int, noun string) string {
	switch {
	case n == 1:
		return "1 " + noun
	case strings.HasSuffix(noun, "s"):
		return fmt.Sprintf("%d %ses", n, noun)
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
