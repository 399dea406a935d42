// Command goapi prints the reference of the Go packages for the documentation site, in Markdown:
//
//	goapi FOLDER | FOLDER.TYPE ...
//
// FOLDER is the folder of a package of the module. Of a package in FOLDER.TYPE, only the declaration
// of the type is printed.
package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/build"
	"go/doc"
	"go/format"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
)

const module = "github.com/miplc/miplc/"

func main() {
	for _, arg := range os.Args[1:] {
		folder, name, _ := strings.Cut(arg, ".")
		if err := printPackage(folder, name); err != nil {
			fmt.Fprintln(os.Stderr, "goapi:", err)
			os.Exit(1)
		}
	}
}

// page prints one package.
type page struct {
	*doc.Package
	files *token.FileSet
}

// printPackage prints a package, or only the declaration of one of its types.
func printPackage(folder, name string) error {
	p, err := load(folder)
	if err != nil {
		return err
	}
	if name == "" {
		p.all()
		return nil
	}
	for _, t := range p.Types {
		if t.Name == name {
			fmt.Printf("### type %s.%s\n\n", p.Name, t.Name)
			p.declaration(t.Decl, t.Doc, nil)
			return nil
		}
	}
	return fmt.Errorf("package %s has no exported type %s", folder, name)
}

// load parses a package as built on this machine, and its tests, which have the examples.
func load(folder string) (page, error) {
	p := page{files: token.NewFileSet()}
	found, err := build.ImportDir(folder, 0)
	if err != nil {
		return p, err
	}
	var files []*ast.File
	for _, names := range [][]string{found.GoFiles, found.CgoFiles, found.TestGoFiles, found.XTestGoFiles} {
		for _, name := range names {
			file, err := parser.ParseFile(p.files, filepath.Join(folder, name), nil, parser.ParseComments)
			if err != nil {
				return p, err
			}
			files = append(files, file)
		}
	}
	p.Package, err = doc.NewFromFiles(p.files, files, module+folder)
	return p, err
}

func (p page) all() {
	fmt.Printf("## Package %s\n\n```go\nimport %q\n```\n\n", p.Name, p.ImportPath)
	p.declaration(nil, p.Doc, p.Examples)
	p.values("Constants", p.Consts)
	p.values("Variables", p.Vars)
	for _, f := range p.Funcs {
		p.function(f)
	}
	for _, t := range p.Types {
		fmt.Printf("### type %s\n\n", t.Name)
		p.declaration(t.Decl, t.Doc, t.Examples)
		for _, v := range append(t.Consts, t.Vars...) {
			p.declaration(v.Decl, v.Doc, nil)
		}
		for _, f := range append(t.Funcs, t.Methods...) {
			p.function(f)
		}
	}
}

func (p page) values(title string, values []*doc.Value) {
	if len(values) > 0 {
		fmt.Printf("### %s\n\n", title)
	}
	for _, v := range values {
		p.declaration(v.Decl, v.Doc, nil)
	}
}

func (p page) function(f *doc.Func) {
	receiver := ""
	if f.Recv != "" {
		receiver = "(" + f.Recv + ") "
	}
	fmt.Printf("#### func %s%s\n\n", receiver, f.Name)
	p.declaration(f.Decl, f.Doc, f.Examples)
}

// declaration prints a declaration, its comment and its examples.
func (p page) declaration(decl ast.Decl, comment string, examples []*doc.Example) {
	if decl != nil {
		fmt.Printf("```go\n%s\n```\n\n", p.source(decl))
	}
	printer := p.Printer()
	printer.HeadingLevel = 5
	os.Stdout.Write(printer.Markdown(p.Parser().Parse(comment)))
	fmt.Println()
	for _, e := range examples {
		title := cmp.Or(strings.TrimSpace("Example "+e.Suffix), "Example")
		code := strings.TrimSuffix(strings.TrimPrefix(p.source(e.Code), "{\n"), "\n}")
		code = strings.ReplaceAll(strings.TrimPrefix(code, "\t"), "\n\t", "\n")
		fmt.Printf("**%s**\n\n%s\n\n```go\n%s\n```\n\n", title, e.Doc, code)
		if e.Output != "" {
			fmt.Printf("```text\n%s```\n\n", e.Output)
		}
	}
}

func (p page) source(node any) string {
	var out strings.Builder
	if err := format.Node(&out, p.files, node); err != nil {
		panic(err)
	}
	return out.String()
}
