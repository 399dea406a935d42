// Equations are read in every form of YAML, and their mistakes have a place.

package language

import (
	"fmt"
	"go/ast"
	"strings"
	"testing"

	"github.com/miplc/miplc/internal/diag"
)

// TestEquationPlaces checks that At returns the position of a name, marked with «», in equations of
// every YAML scalar style.
func TestEquationPlaces(t *testing.T) {
	for name, value := range map[string]string{
		"plain":              "X + «here» * 2",
		"plain, blanks":      "   X   +  «here» # a comment",
		"plain lines":        "X\n      + 2\n\n      + «here»",
		"single":             "'X + «here»'",
		"double":             `"X + «here»"`,
		"double, escapes":    `"\x58 \u002b\t\U00000058 - \x58\  *  «here»"`,
		"double, lines":      "\"X +\n      X \\\n      + «here»\"",
		"double, escaped nl": `"X +\n X + «here»"`,
		"literal":            "|\n      X +\n        X\n        + «here»",
		"literal, keep":      "|+  # keep\n\n      X +\n\n      «here»\n\n",
		"literal, indent":    "|2-\n        X +\n      «here»",
		"folded":             ">-\n      X +\n\n      X +\n        X +\n      «here»",
		"flow":               "«here» + 1",
	} {
		src := "name: x\nmodel:\n  params: {here: [d, k]}\n  let:\n    q: " + value + "\n    p: softmax(bag_sum(q))\n"
		if name == "flow" {
			src = "name: x\nmodel: {params: {here: [d, k]}, let: {q: " + value + ", p: softmax(bag_sum(q))}}\n"
		}
		before, _, _ := strings.Cut(src, "«")
		line := strings.Count(before, "\n") + 1
		want := diag.Pos{File: "test.yaml", Line: line, Col: len(before) - strings.LastIndex(before, "\n")}
		src = strings.NewReplacer("«", "", "»", "").Replace(src)
		s := mustParse(t, src)
		eq := &s.Model.Let[0]
		found := false
		eq.names(func(x *ast.Ident) {
			if x.Name != "here" {
				return
			}
			found = true
			if got := eq.At(offsetOf(x.Pos())); got != want {
				t.Errorf("%s: at %v, want %v", name, got, want)
			}
			if got := eq.LineAt(offsetOf(x.Pos())); !strings.Contains(got, "here") || got != strings.Split(src, "\n")[line-1] {
				t.Errorf("%s: line %q", name, got)
			}
			if eq.Text.V[offsetOf(x.Pos()):offsetOf(x.End())] != "here" {
				t.Errorf("%s: wrong Offset", name)
			}
		})
		if !found {
			t.Errorf("%s: the name was not parsed in %q", name, eq.Text.V)
		}
	}
}

func TestEquationForms(t *testing.T) {
	good := []string{
		"X", "1", "0.5", ".5", "1e-5", "2.", "-X", "-(-X)", "- -X", "(X)", "X+X-X*X/X", "sum(X)", "sum(X, 1)", "sum(X, -1)",
		"max(X, (0))",
		"clamp(X, -1, 1)", "clamp(X, -1e-5, -(-1))", "concat(X, X)", "concat(X, X, X, X)", "mean(X)", "mean(X, 0)",
		"stop_gradient(of_bag(bag_max(X)))", "log_softmax(\n X\n)", "X\n+ X",
	}
	for _, text := range good {
		if errs := formErrors(text); len(errs) > 0 {
			t.Errorf("%q: %v", text, errs)
		}
	}
	for _, f := range Functions {
		least, most := f.Arity()
		if most < 0 {
			most = least + 3
		}
		for n := 0; n <= most+1; n++ {
			args := make([]string, n)
			for i := range args {
				args[i] = "1"
			}
			text := fmt.Sprintf("%s(%s)", f.Name, strings.Join(args, ", "))
			wantGood := n >= least && (f.variadic || n <= most)
			if errs := formErrors(text); (len(errs) == 0) != wantGood {
				t.Errorf("%s: %v", text, errs)
			}
		}
	}
}

// formErrors parses a single expression.
func formErrors(text string) diag.List {
	_, faults, _ := readAlone(text)
	return faults
}

// readAlone reads a spec with a single equation. The equation is nil if YAML cannot contain the
// text. read are the errors of the text, conflicts the errors across keys.
func readAlone(text string) (eq *Equation, read, conflicts diag.List) {
	block := strings.ReplaceAll(text, "\n", "\n      ")
	s, read, conflicts, err := parse("test", []byte("name: x\nmodel:\n  let:\n    q: |2-\n      "+block), nil)
	if err != nil || len(s.Model.Let) == 0 {
		return nil, read, conflicts
	}
	return &s.Model.Let[0], read, conflicts
}
