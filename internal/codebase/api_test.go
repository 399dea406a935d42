package codebase

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

	"github.com/miplc/miplc/internal/testsupport"
)

// TestRuntimeAPI holds what services can name to a golden file, so that adding,
// changing or taking back a name is a decision.
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
		t.Log("what services can name has changed: if that is meant, say it in CHANGELOG.md")
	}
}

// exportedDeclarations prints the exported declarations of a package, without bodies,
// comments and what is not exported, sorted.
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
						v.Values = nil // the words of an error
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
