// Command codebase prints measures of the size and order of the Go code in a folder, by default this repository.
// Its tests check the map in docs/architecture.md, the links in documents, the exported names of package runtime, how
// goroutines are started, and the length of lines.
//
//	go run ./internal/codebase [DIR]
package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"log"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// file is a Go file of the module. Its code is product, tests, generated, or helpers of tests.
type file struct {
	folder, text string
	test         bool
	*ast.File
}

var positions = token.NewFileSet()

func main() {
	log.SetFlags(0)
	root := append(os.Args, ".")[1]
	files, folders, err := read(root)
	text, noModule := os.ReadFile(filepath.Join(root, "go.mod"))
	if err = errors.Join(err, noModule); err != nil {
		log.Fatal(err)
	}
	module := strings.Fields(string(text))[1]
	reached, packages, lines := reachable(files, module+"/"), map[string]bool{}, map[string]int{}
	var product []*file
	for _, f := range files {
		kind := "product"
		switch {
		case f.test:
			kind = "tests"
		case ast.IsGenerated(f.File):
			kind = "generated"
		case !reached[f.folder]:
			kind = "helpers"
		default:
			product = append(product, f)
		}
		packages[f.folder] = true
		lines[kind] += strings.Count(f.text, "\n")
	}
	print := func(n int, what string) { fmt.Printf("%6d %s\n", n, what) }
	print(folders, "folders at the root")
	print(len(packages), "packages")
	for _, kind := range []string{"product", "helpers", "tests", "generated"} {
		print(lines[kind], "lines of code: "+kind)
	}
	print(strings.Count(string(text), "\n\t"), "modules in go.mod")
	measure(product, print)
}

// read parses the Go files of the module in root and counts its folders, without hidden ones.
func read(root string) (files []*file, folders int, err error) {
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == root {
			return err
		}
		if d.IsDir() {
			hidden := strings.ContainsAny(d.Name()[:1], "._")
			if !hidden && filepath.Dir(path) == filepath.Clean(root) {
				folders++
			}
			if _, none := os.Stat(filepath.Join(path, "go.mod")); hidden || none == nil || d.Name() == "testdata" {
				return filepath.SkipDir
			}
		}
		if filepath.Ext(path) != ".go" {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		tree, err := parser.ParseFile(positions, path, text, parser.ParseComments)
		folder, _ := filepath.Rel(root, filepath.Dir(path)) // path is below root
		files = append(files, &file{filepath.ToSlash(folder), string(text), strings.HasSuffix(path, "_test.go"), tree})
		return err
	})
	return files, folders, err
}

// reachable returns the folders of commands and of what they import. The other packages help tests.
func reachable(files []*file, prefix string) map[string]bool {
	reached := map[string]bool{}
	for before := -1; before < len(reached); {
		before = len(reached)
		for _, f := range files {
			if f.test || f.Name.Name != "main" && !reached[f.folder] {
				continue
			}
			reached[f.folder] = true
			for _, i := range f.Imports {
				if to, ours := strings.CutPrefix(strings.Trim(i.Path.Value, `"`), prefix); ours {
					reached[to] = true
				}
			}
		}
	}
	return reached
}

// header is a sentence at the beginning of a file, after build constraints.
var header = regexp.MustCompile(`^(//go:build.*\n\s*)?// `)

// measure prints the measures of names, first lines and functions.
func measure(files []*file, print func(n int, what string)) {
	types, alike, headers, long := map[string][]string{}, 0, 0, 0
	line := func(p token.Pos) int { return positions.Position(p).Line }
	for _, f := range files {
		if header.MatchString(f.text) {
			headers++
		}
		for _, d := range f.Decls {
			if body, ok := d.(*ast.FuncDecl); ok && line(body.End())-line(body.Pos()) >= 60 {
				long++
			}
			if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.TYPE {
				for _, s := range g.Specs {
					name := s.(*ast.TypeSpec).Name.Name
					if !slices.Contains(types[name], f.folder) {
						types[name] = append(types[name], f.folder)
						alike += map[int]int{2: 1}[len(types[name])] // once per name
					}
				}
			}
		}
	}
	print(alike, "names of types that several packages declare")
	print(headers, fmt.Sprintf("of %d files begin with a sentence", len(files)))
	print(long, "functions of more than 60 lines")
}
