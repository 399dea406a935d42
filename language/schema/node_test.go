// Which nodes are written on one line.

package schema

import (
	"testing"

	"github.com/miplc/miplc/internal/diag"
)

func parseTree(text []byte) (*Node, error) {
	var errs diag.List
	n := parseYAML("x.yaml", text, &errs)
	return n, errs.Err()
}

// Flow writes a value that is parsed as the same value.
func TestTreeFlow(t *testing.T) {
	for text, want := range map[string]string{
		"a: 1":                         "{a: 1}",
		"a: [1, two, 'a, b']":          `{a: [1, two, "a, b"]}`,
		"a:\n  - b: {c: d}\n  - \"1\"": `{a: [{b: {c: d}}, "1"]}`,
		"a: |\n  two\n  lines\n":       `{a: "two\nlines\n"}`,
	} {
		n, err := parseTree([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if got := n.Flow(); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
		again, err := parseTree([]byte(n.Flow()))
		if err != nil || again.Flow() != want {
			t.Errorf("%s is parsed as %v, %v", want, again, err)
		}
	}
	for _, text := range []string{"", "a: &x 1", "a: 1\na: 2", "a: !!int 1", "\xff"} {
		if _, err := parseTree([]byte(text)); err == nil {
			t.Errorf("%q was read", text)
		}
	}
}
