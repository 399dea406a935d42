// No text makes the reader panic.

package language

import (
	"bytes"
	"go/ast"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/language/schema"
)

// FuzzParse checks that any input gives a spec that survives its round trip, or diagnostics that can
// be rendered, and never a panic.
func FuzzParse(f *testing.F) {
	files, err := filepath.Glob("testdata/*/*.yaml")
	if err != nil || len(files) == 0 {
		f.Fatal("no seeds in testdata", err)
	}
	shippedFiles, err := filepath.Glob("*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range append(files, shippedFiles...) {
		src, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(src, strings.Join(setsOf(src), "\n"))
	}
	f.Add([]byte(full), "train.epochs=5\nloss.attention=0.5")
	f.Add([]byte(small), "model.blocks.attention.width=3")
	f.Fuzz(func(t *testing.T, src []byte, sets string) {
		if len(src) > 1<<14 { // larger inputs find nothing new and take time
			return
		}
		var overrides []string
		if sets != "" {
			overrides = strings.Split(sets, "\n")
		}
		// With the name of a shipped spec, extends cannot read files.
		spec, err := Parse(schema.Builtin+"fuzz", src, overrides...)
		if err != nil {
			var out bytes.Buffer
			diag.Render(&out, err)
			if list, ok := err.(diag.List); !ok || len(list) == 0 || out.Len() == 0 {
				t.Fatalf("error %T %v", err, err)
			}
			return
		}
		checkRoundTrip(t, spec)
	})
}

// FuzzEquation checks that any expression gives diagnostics, or a syntax tree whose names are at the
// positions that At returns.
func FuzzEquation(f *testing.F) {
	for _, text := range []string{
		"matmul(tanh(matmul(X, Wv) + bv) * sigmoid(X), W)", "-softplus(-s)", "sum(w * logp, 1)", "clamp(X, -1e-5, 2)",
		"a ** 2", "X // 2", "a.b", "func() {}", "x[1:2]", "X +", "1_000", "'c'", "\"s\"", "`r`", "concat(X...)", "((X))",
		"sum(X,)", "X\n+ Y", "µ", "A()", "<-X", "&X", "struct{}",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		eq, faults, conflicts := readAlone(text)
		if eq == nil {
			return
		}
		if eq.Expr == nil {
			// Calls are checked after all functions of the spec are read.
			unknown := func(d diag.Diagnostic) bool { return strings.HasPrefix(d.Text, "there is no function ") }
			if len(faults) == 0 && !slices.ContainsFunc(conflicts, unknown) {
				t.Fatal("neither an equation nor an error")
			}
			return
		}
		eq.names(func(x *ast.Ident) {
			offset := offsetOf(x.Pos())
			pos := eq.At(offset)
			line := []rune(eq.LineAt(offset))
			if got := string(line[pos.Col-1:]); !strings.HasPrefix(got, x.Name) {
				t.Fatalf("At returns %[2]v for %[1]s, the text there is %[3]q", x.Name, pos, got)
			}
		})
	})
}
