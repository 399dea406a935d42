// Imports follow the map of docs/architecture.md.

package main

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/miplc/miplc/internal/testkit/testsupport"
)

const (
	module  = "github.com/miplc/miplc/"
	root    = "../.."
	mapFile = root + "/docs/architecture.md"
	golden  = "testdata/imports.txt"
)

// TestMap compares the imports of the code with the order of the rows in the table of
// docs/architecture.md and with testdata/imports.txt, except for imports of tests. A row describes a
// folder and the folders below it without a row. A package may import only packages of rows above
// its own.
func TestMap(t *testing.T) {
	rows := readMap(t)
	drawn := imports(t, rows)
	before, err := os.ReadFile(golden)
	if err != nil && !testsupport.Update() {
		t.Fatal(err)
	}
	known := strings.Split(string(before), "\n")
	var after strings.Builder
	for i, r := range rows {
		imported, there := drawn[r.folder]
		if !there {
			t.Errorf("docs/architecture.md:%d: there is no package in %s: delete the row, or rename it if the folder was "+
				"renamed", r.line, r.folder)
			continue
		}
		for _, to := range imported {
			if at := rowIndex(rows, to); at > i {
				t.Errorf("docs/architecture.md: %s imports %s, which is below it in the map. Packages may import only rows "+
					"above. Move the code to its stage, or move the row if the order is wrong", r.folder, to)
			}
		}
		line := strings.TrimSpace(r.folder + ": " + strings.Join(imported, ", "))
		after.WriteString(line + "\n")
		if at := slices.IndexFunc(known, func(l string) bool { return strings.HasPrefix(l, r.folder+":") }); at >= 0 &&
			known[at] != line && !testsupport.Update() {
			t.Errorf("%s says\n    %s\nthe code has\n    %s\nIf the change is intended, run `go test ./internal/codebase "+
				"-update` and read the diff. Otherwise remove the import.", golden, known[at], line)
		}
	}
	if !t.Failed() {
		testsupport.CheckGolden(t, golden, after.String())
	}
}

// row is one line of the map: a folder and its stage.
type row struct {
	line          int // from 1
	folder, stage string
}

const mapHead = "| folder | stage | contents |"

func readMap(t *testing.T) (rows []row) {
	text, err := os.ReadFile(mapFile)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	head := slices.Index(lines, mapHead)
	if head < 0 {
		t.Fatalf("docs/architecture.md has no line %q", mapHead)
	}
	for i := head + 2; i < len(lines) && strings.HasPrefix(lines[i], "|"); i++ {
		cells := strings.Split(strings.Trim(lines[i], "|"), "|")
		if len(cells) != 3 {
			t.Fatalf("docs/architecture.md:%d: a row has 3 columns", i+1)
		}
		rows = append(rows, row{i + 1, strings.TrimSpace(cells[0]), strings.TrimSpace(cells[1])})
	}
	return rows
}

// helper reports a row of stage "all", which every folder may import.
func (r row) helper() bool { return r.stage == "all" }

func rowIndex(rows []row, folder string) int {
	return slices.IndexFunc(rows, func(r row) bool { return r.folder == folder })
}

// rowOf returns the row with the longest folder that contains the package, or -1.
func rowOf(rows []row, path string) int {
	best := -1
	for i, r := range rows {
		within := path == r.folder || strings.HasPrefix(path, r.folder+"/")
		if within && (best < 0 || len(r.folder) > len(rows[best].folder)) {
			best = i
		}
	}
	return best
}

// imports returns the rows that the packages of each row import, in the order of the map.
func imports(t *testing.T, rows []row) map[string][]string {
	found := make(map[string]map[int]bool)
	all, err := folders()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		from := rowOf(rows, p.path)
		if from < 0 {
			t.Errorf("no row of the map in docs/architecture.md contains %s: add one below all packages that it imports: | "+
				"%s | stage | contents |", p.path, p.path)
			continue
		}
		folder := rows[from].folder
		if found[folder] == nil {
			found[folder] = make(map[int]bool)
		}
		for _, imported := range p.imports {
			if to := rowOf(rows, imported); to >= 0 && to != from && !rows[to].helper() {
				found[folder][to] = true
			}
		}
	}
	drawn := make(map[string][]string, len(found))
	for folder, tos := range found {
		drawn[folder] = nil
		for i, r := range rows {
			if tos[i] {
				drawn[folder] = append(drawn[folder], r.folder)
			}
		}
	}
	return drawn
}

// pkg is a package of this module and the packages of the module that it imports, by folder.
type pkg struct {
	path    string
	imports []string
}

// folders reads the imports of all files except tests, under any build tags. It parses the files
// itself, because the test cache does not notice that the output of another program changed.
var folders = sync.OnceValues(func() ([]pkg, error) {
	byPath := make(map[string]*pkg)
	var all []pkg
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() && path != root && (name == "testdata" || name[0] == '.' || name[0] == '_') {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		dir, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		dir = filepath.ToSlash(dir)
		if byPath[dir] == nil {
			byPath[dir] = &pkg{path: dir}
		}
		for _, spec := range file.Imports {
			if imported, ours := strings.CutPrefix(strings.Trim(spec.Path.Value, `"`), module); ours {
				byPath[dir].imports = append(byPath[dir].imports, imported)
			}
		}
		return nil
	})
	for _, p := range byPath {
		all = append(all, *p)
	}
	return all, err
})
