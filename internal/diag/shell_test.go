// Words for a shell.

package diag

import "testing"

func TestShellWord(t *testing.T) {
	for in, want := range map[string]string{
		"results/my-run_1.0": "results/my-run_1.0",
		"":                   "''",
		"my table":           "'my table'",
		"o'hara/$HOME":       `'o'\''hara/$HOME'`,
		"a=b":                "'a=b'", // as the first word it would be an assignment
		"~":                  "'~'",
		"ü":                  "'ü'",
	} {
		if got := ShellWord(in); got != want {
			t.Errorf("%s becomes %s, want %s", in, got, want)
		}
	}
}
