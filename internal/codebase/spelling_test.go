// Identifiers are spelled as in American English, like those of other libraries. Prose is British.

package main

import (
	"go/ast"
	"regexp"
	"strings"
	"testing"
)

// british matches identifiers, and the table has their American spellings.
var (
	british  = regexp.MustCompile(`(?i)alis(e|ing|ation)|initialis|optimis|colour|neighbour|grey|centre|labelled`)
	american = strings.NewReplacer("is", "iz", "our", "or", "grey", "gray", "Grey", "Gray", "centre", "center", "Centre",
		"Center", "labelled", "labeled", "Labelled", "Labeled")
)

func TestSpelling(t *testing.T) {
	files, _, err := read(root)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, f := range files {
		ast.Inspect(f.File, func(n ast.Node) bool {
			name, ok := n.(*ast.Ident)
			if ok && british.MatchString(name.Name) && !seen[name.Name] {
				seen[name.Name] = true
				t.Errorf("%s: the identifier %s: write %s", f.folder, name.Name,
					british.ReplaceAllStringFunc(name.Name, american.Replace))
			}
			return true
		})
	}
}
