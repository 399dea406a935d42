// The exported names of package runtime change only on purpose.

package main

import (
	"bytes"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/miplc/miplc/internal/testkit/testsupport"
)

// TestRuntimeAPI compares the exported API of package runtime with a golden file, so that every
// added, changed or removed name is a deliberate decision.
func TestRuntimeAPI(t *testing.T) {
	var api strings.Builder
	for _, folder := range []string{"runtime", "runtime/onnxgo"} {
		api.WriteString("package " + module + folder + "\n\n")
		for _, declaration := range exportedDeclarations(t, filepath.Join(root, folder)) {
			api.WriteString(declaration + "\n")
		}
		api.WriteString("\n")
	}
	testsupport.CheckGolden(t, root+"/runtime/testdata/api.txt", api.String())
	if t.Failed() {
		t.Log("the API of package runtime has changed: if this is intended, add a line to CHANGELOG.md")
	}
}

// exportedDeclarations prints the exported declarations of a package, sorted, without bodies and
// comments.
func exportedDeclarations(t *testing.T, dir string) []string {
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no package at %s: %v", dir, err)
	}
	var all []string
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.FileExports(file)
		for _, decl := range file.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if d.Recv != nil && !exportedType(d.Recv.List[0].Type) {
					continue
				}
				d.Body = nil
			case *ast.GenDecl:
				if d.Tok == token.IMPORT {
					continue
				}
				for _, spec := range d.Specs {
					if v, ok := spec.(*ast.ValueSpec); ok && d.Tok == token.VAR {
						v.Values = nil // the text of an error
					}
				}
			}
			var out bytes.Buffer
			if err := format.Node(&out, fset, decl); err != nil {
				t.Fatal(err)
			}
			all = append(all, out.String())
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func exportedType(receiver ast.Expr) bool {
	if star, ok := receiver.(*ast.StarExpr); ok {
		receiver = star.X
	}
	name, ok := receiver.(*ast.Ident)
	return ok && name.IsExported()
}
