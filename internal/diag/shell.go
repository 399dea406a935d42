// Words for a shell.

package diag

import (
	"regexp"
	"strings"
)

// plainWord matches words that mean the same in a shell with and without quotes.
var plainWord = regexp.MustCompile(`^[\w./@%+:,-]+$`)

// ShellWord returns text as one word of a command line for a POSIX shell, in quotes if it needs them.
func ShellWord(s string) string {
	if plainWord.MatchString(s) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
