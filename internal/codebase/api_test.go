// The exported names of package runtime change only on purpose.

package main

import (
	"bytes"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/miplc/miplc/internal/testkit/testsupport"
)

// TestRuntimeAPI compares the exported names of package runtime, and the metadata that it returns, with those
// that earlier versions promised.
func TestRuntimeAPI(t *testing.T) {
	api := exportedDeclarations(t, "runtime")
	api = append(api, exportedDeclarations(t, "runtime/onnxgo")...)
	for _, line := range exportedDeclarations(t, "internal/contract") {
		if strings.HasPrefix(line, "contract: type Metadata struct, ") {
			api = append(api, line)
		}
	}
	testsupport.CheckPromises(t, "api", api)
}

// exportedDeclarations returns the exported declarations of a package without bodies, values and comments, a
// line each: a function, a method, a field, an interface with its methods, a constant or a variable.
func exportedDeclarations(t *testing.T, folder string) (lines []string) {
	paths, err := filepath.Glob(filepath.Join(root, folder, "*.go"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no package at %s: %v", folder, err)
	}
	fset := token.NewFileSet()
	add := func(words string, node any) {
		var out bytes.Buffer
		if err := format.Node(&out, fset, node); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, path.Base(folder)+": "+words+strings.Join(strings.Fields(out.String()), " "))
	}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
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
				add("", d)
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					declaration(d.Tok, spec, add)
				}
			}
		}
	}
	return lines
}

// declaration adds the lines of a type, constant or variable.
func declaration(kind token.Token, spec ast.Spec, add func(words string, node any)) {
	switch s := spec.(type) {
	case *ast.ValueSpec:
		for _, name := range s.Names {
			add(kind.String()+" ", name)
		}
	case *ast.TypeSpec:
		fields, isStruct := s.Type.(*ast.StructType)
		if !isStruct {
			add("type ", s)
			return
		}
		add("type ", s.Name)
		for _, f := range fields.Fields.List {
			for _, name := range f.Names {
				add("type "+s.Name.Name+" struct, "+name.Name+" ", f.Type)
			}
			if len(f.Names) == 0 {
				add("type "+s.Name.Name+" struct, embedded ", f.Type)
			}
		}
	}
}

func exportedType(receiver ast.Expr) bool {
	if star, ok := receiver.(*ast.StarExpr); ok {
		receiver = star.X
	}
	name, ok := receiver.(*ast.Ident)
	return ok && name.IsExported()
}
