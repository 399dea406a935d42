// File names that are safe to print.

package diag

import (
	"crypto/sha256"
	"fmt"
	"strings"
)

// FileName returns a file name for any text, a different one for each text: characters other than
// letters, digits, "-", "." and "=" become "_", and a hash is appended if that loses information.
func FileName(name string) string {
	exact := !strings.HasPrefix(name, ".")
	out := strings.TrimLeft(strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '.', r == '=':
			return r
		case r != ' ':
			exact = false
		}
		return '_'
	}, name), ".")
	if exact {
		return out
	}
	hash := sha256.Sum256([]byte(name))
	return fmt.Sprintf("%s-%x", out, hash[:4])
}
